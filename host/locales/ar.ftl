# العربية، بصيغة رسمية.

## Common

list-separator = {"، "}
moment = { $date }، { $time } ({ $zone })
amount = { $number } { $currency }
yes = نعم
no = لا
reference = المرجع: { $id }

## Errors as pages

error-missing-title = هذه الصفحة غير موجودة
error-missing = يرجى فتح الرابط الوارد في بريدكم الإلكتروني مرة أخرى، أو طلب رابط جديد من المُرسِل.
error-refused-title = هذا الرابط لا يعمل
error-refused = ربما انتهت صلاحيته أو أنه غير مكتمل. يرجى طلب رابط جديد من المُرسِل.
error-changed-title = هذا غير ممكن حاليًا
error-changed = تغيّر المستند في هذه الأثناء. يرجى فتح الرابط الوارد في بريدكم الإلكتروني مرة أخرى.
error-incomplete-title = هناك شيء ناقص
error-incomplete = يرجى الرجوع والمحاولة مرة أخرى، أو فتح الرابط الوارد في بريدكم الإلكتروني من جديد.
error-busy-title = لحظة من فضلكم
error-busy = استُخدم هذا الرابط مرات كثيرة في وقت قصير. يرجى الانتظار دقيقة ثم المحاولة مرة أخرى.
error-large-title = الحجم كبير جدًا
error-large = الصورة كبيرة جدًا. يرجى الرجوع وتجربة صورة أصغر.
error-slow-title = كان الاتصال بطيئًا جدًا
error-slow = لم تصل إدخالاتكم في الوقت المناسب. يرجى الرجوع والمحاولة مرة أخرى.
error-unavailable-title = غير متاح حاليًا
error-unavailable = رابطكم صالح وإدخالاتكم المحفوظة باقية. يرجى المحاولة مرة أخرى بعد بضع دقائق.
error-failed-title = حدث خطأ ما
error-failed = إدخالاتكم المحفوظة باقية. يرجى المحاولة مرة أخرى بعد بضع دقائق، أو التواصل مع المُرسِل.

## Signing form

signing-for = إلى { $name }، { $role }
signing-reading-view = وضع القراءة
signing-document = المستند
signing-page = الصفحة { $number } من { $count }
signing-page-text = نص الصفحة { $number }
signing-your-fields = حقولكم
signing-title = التعبئة والتوقيع
signing-progress = الحقول الإلزامية المكتملة: { $done } من { $total }
signing-problems = يرجى مراجعة هذه الحقول:
signing-consent-field = موافقتكم
signing-reason-field = السبب
signing-document-field = المستند
signing-required = (إلزامي)
signing-fixed = (ثابت)
signing-choose = يرجى الاختيار…
signing-type-name = اكتبوا اسمكم
signing-type-initials = اكتبوا الأحرف الأولى من اسمكم
signing-your-signature = توقيعكم
signing-sign-again = التوقيع من جديد
signing-not-filled-in = غير معبأ
signing-style = نمط التوقيع المكتوب
signing-style-casual = نمط حر
signing-style-formal = نمط رسمي
signing-style-light = نمط رفيع
signing-check = مراجعة إجاباتكم
signing-finish = إنهاء وتوقيع
signing-check-first = مراجعة أولًا
signing-save = حفظ للمتابعة لاحقًا
signing-back = السابق
signing-next = التالي
signing-start = ابدأ
signing-continue = متابعة
signing-skip = تخطٍّ
signing-check-and-sign = مراجعة وتوقيع
signing-not-answered = بلا إجابة: تُحتسب لا
signing-how-to-give = طريقة الإدخال: { $field }
signing-type = كتابة
signing-draw = رسم
signing-upload = رفع
signing-use-mine = استخدام توقيعي
signing-sign-as = التوقيع باسم { $name }
signing-initial-as = التوقيع بالأحرف الأولى { $name }
signing-draw-hint = ارسموا بالإصبع أو القلم أو الفأرة
signing-clear = مسح
signing-drawing-area = مساحة الرسم: { $field }
signing-choose-picture = اختاروا صورة PNG أو JPEG لتوقيعكم
signing-picture = صورة: { $field }
signing-picture-unreadable = لا يمكن قراءة هذا الملف كصورة.
signing-saving = جارٍ الحفظ…
signing-saved = تم الحفظ
signing-preview = هذه معاينة: لن يُحفظ أو يُوقَّع أي شيء.
signing-offline = لا يوجد اتصال. إدخالاتكم محفوظة هنا وستُحفظ لدينا فور عودة الاتصال.
signing-offline-finish = لا يوجد اتصال. إدخالاتكم محفوظة هنا؛ يرجى التوقيع عند عودة الاتصال.
signing-no-text = لا تحتوي هذه الصفحة على نص.
signing-text-failed = تعذّر تحميل النص.
mark-sign = توقيع
mark-initial = الأحرف الأولى
mark-date = التاريخ
mark-fill-in = تعبئة
mark-attach = إرفاق
attachment-add = إرفاق
attachment-remove = إزالة
attachment-hint = ملف PDF أو PNG أو JPEG لا يتجاوز { $limit } ميغابايت. سيصبح جزءًا من المستند.
attachment-files = الملفات المرفقة
attachment-failed = تعذّر إرسال الملف. حاول مرة أخرى.

## Consent

consent-statement = أوافق على توقيع هذا المستند إلكترونيًا. لتوقيعي هنا الأثر نفسه الذي للتوقيع على الورق.
consent-about = حول التوقيعات الإلكترونية
consent-disclosure = يمكنكم الرفض وطلب نسخة ورقية من المُرسِل بدلًا من ذلك. ستصلكم عبر البريد الإلكتروني نسخة من المستند الموقّع، يمكنكم قراءتها بأي قارئ PDF وطباعتها. يُحفظ مع توقيعكم الوقتُ وعنوانكم على الإنترنت واسم متصفحكم.

## Declining

decline-summary = لا أرغب في التوقيع
decline-reason = السبب
decline-open = رفض…
decline-warning = يؤدي الرفض إلى إغلاق هذا المستند أمام جميع الأطراف ولا يمكن التراجع عنه. ويُبلَّغ المُرسِل بالسبب.
decline-confirm = رفض وإغلاق المستند أمام جميع الأطراف

## Problems of entries

problem-required = هذا الحقل إلزامي
problem-unsigned = وقّعوا هنا أو في حقل توقيع آخر من حقولكم
problem-consent = يلزم الحصول على موافقتكم على التوقيع الإلكتروني
problem-document-changed = وقّع شخص آخر منذ أن فتحتم المستند. يرجى الاطلاع على الصفحات مرة أخرى
problem-reason = يرجى ذكر سبب الرفض
problem-too-long = { $limit } حرف كحد أقصى
problem-number = أدخلوا رقمًا
problem-date = أدخلوا تاريخًا بصيغة سنة-شهر-يوم
problem-option = اختاروا أحد الخيارات
problem-too-small = ‏{ $limit } على الأقل
problem-too-big = ‏{ $limit } على الأكثر
problem-too-early = ليس قبل { $limit }
problem-too-late = ليس بعد { $limit }
problem-result-changed = تغيّرت النتيجة. تحقّق منها
problem-pattern = هذا الإدخال ليس بالصيغة المطلوبة
problem-attachment-size = أرفق ملفًا لا يتجاوز { $limit } ميغابايت
problem-attachments-size = يجب ألا يتجاوز مجموع الملفات { $limit } ميغابايت
problem-attachment-type = أرفق ملف PDF أو PNG أو JPEG
problem-attachment-pages = أرفق ملف PDF لا يتجاوز عدد صفحاته { $limit }
problem-attachment-unreadable = تعذّرت قراءة هذا الملف. قد يكون تالفًا أو محميًا بكلمة مرور
problem-picture-format = استخدموا صورة PNG أو JPEG
problem-picture-size = استخدموا صورة لا يتجاوز حجمها { $limit } كيلوبايت
problem-picture-unreadable = لا يمكن قراءة هذه الصورة

## Pages of a signing link

link-unknown-title = هذا الرابط لا يعمل
link-unknown = يرجى التأكد من اكتماله، أو طلب رابط جديد من المُرسِل.
link-expired-title = انتهت صلاحية هذا الرابط
link-expired = تعمل الروابط لمدة محدودة لحماية مستندكم.
link-renew = إرسال رابط جديد إلى بريدي
link-mailed-title = رسالة في طريقها إليكم
link-mailed = يرجى مراجعة صندوق الوارد: أُرسل الرابط إلى عنوان دعوتكم.
link-too-soon-title = يرجى مراجعة صندوق الوارد
link-too-soon = أرسلنا إليكم رسالة قبل بضع دقائق. يرجى مراجعة صندوق الوارد، أو المحاولة لاحقًا.
replaced-title = تم استبدال الموقّع
replaced = طُلب من شخص آخر التوقيع بدلًا منكم.
incomplete-title = هناك شيء ناقص
incomplete = يرجى الرجوع والمحاولة مرة أخرى.
withdrawn-title = تم السحب
withdrawn = سحب المُرسِل هذا المستند.
expired-title = انتهت المهلة
expired = انقضت مهلة توقيع هذا المستند.
declined-by-other-title = مرفوض
declined-by-other = رفض موقّع آخر هذا المستند.
nothing-to-sign-title = لا يوجد ما يلزم توقيعه
nothing-to-sign = هذا المستند غير مفتوح للتوقيع.
closed-title = هذا المستند مغلق
closed = لم يعد بالإمكان توقيعه.
unavailable-title = غير متاح حاليًا
unavailable-document = لا يمكن عرض المستند حاليًا. رابطكم صالح: يرجى المحاولة مرة أخرى بعد بضع دقائق.
unavailable-identity = لا يمكن التحقق من هويتكم حاليًا. رابطكم صالح: يرجى المحاولة مرة أخرى بعد بضع دقائق.
unavailable-payment = لا يمكن إجراء الدفع حاليًا. رابطكم صالح: يرجى المحاولة مرة أخرى بعد بضع دقائق.
not-yet-title = لم يحن دوركم بعد
not-yet = يسبقكم { $name } في التوقيع. ستصلكم رسالة عندما يحين دوركم.
not-yet-other = يسبقكم شخص آخر في التوقيع. ستصلكم رسالة عندما يحين دوركم.
signed-thanks = شكرًا لكم
signed-title = لقد وقّعتم
signed-document = لقد وقّعتم «{ $document }».
signed-still-to-sign = بانتظار توقيع:
signed-copy-later = ستصلكم نسختكم عبر البريد الإلكتروني بعد توقيع جميع الأطراف.
signed-copy-expired = وقّع جميع الأطراف. انتهت صلاحية هذا الرابط، لذلك سنرسل نسختكم عبر البريد الإلكتروني.
signed-mail-copy = إرسال نسختي إلى بريدي
signed-copy-ready = وقّع جميع الأطراف. يمكنكم تنزيل نسختكم، وسنرسلها أيضًا عبر البريد الإلكتروني.
signed-download = تنزيل نسختكم
signed-certificate = تنزيل شهادة الإتمام
certificate-name = شهادة الإتمام
continue-to = المتابعة إلى { $host }
close-page = يمكنكم إغلاق هذه الصفحة.
you-declined-title = لقد رفضتم
you-declined = أبلغنا المُرسِل.

## Payment

payment-title = الدفع
payment-for = مقابل «{ $document }»
payment-due = المبلغ المستحق:
payment-pay = دفع { $amount }
payment-other-way = يحصّل المُرسِل هذه الدفعة بطريقة أخرى.
payment-needs-script = يتطلب الدفع تفعيل JavaScript في متصفحكم.
payment-back = العودة إلى المستند
payment-received-title = تم استلام الدفعة
payment-paid = المبلغ المدفوع:
payment-sandbox = هذه بيئة تجريبية للتطوير: لا تُحوَّل أي أموال.
payment-load-failed = تعذّر تحميل نموذج الدفع.
payment-failed = لم تكتمل عملية الدفع.

## Identity check

identity-title = تأكيد هويتكم
identity-before = قبل فتح «{ $document }»، يرغب المُرسِل في التأكد من أنكم الشخص المقصود.
identity-code-title = أدخلوا الرمز
identity-questions-title = أجيبوا عن هذه الأسئلة
identity-wrong-title = لم تكن إجاباتكم صحيحة
identity-wait-title = يرجى العودة لاحقًا
identity-exhausted-title = لا توجد محاولات متبقية
identity-busy-title = لحظة من فضلكم
identity-unavailable-title = تعذّر التحقق من هويتكم
identity-time-over = انقضت المهلة. يمكنكم البدء من جديد.
identity-wrong-code = هذا الرمز غير صحيح. أرسلنا إليكم رمزًا جديدًا.
identity-not-accepted = لم تُقبل إدخالاتكم. يرجى مراجعتها والمحاولة مرة أخرى.
identity-too-many = طُلبت رموز كثيرة. يرجى الانتظار قليلًا قبل المحاولة مرة أخرى.
identity-try-later = لم تستجب خدمة التحقق من الهوية. يرجى المحاولة مرة أخرى بعد لحظات.
identity-first-name = الاسم الأول
identity-last-name = اسم العائلة
identity-phone = الهاتف المحمول
identity-birth = تاريخ الميلاد
identity-ssn = آخر أربعة أرقام من رقم الضمان الاجتماعي
identity-line1 = الشارع والرقم
identity-line2 = الشقة أو الوحدة
identity-city = المدينة
identity-state = الولاية
identity-zip = الرمز البريدي
identity-consent = أوافق على إرسال هذه المعلومات إلى خدمة للتحقق من الهوية، تبحث عن سجلات تخصني لإعداد أسئلة يمكنني الإجابة عنها.
identity-kept = تُستخدم لهذا التحقق وحده ولا تُحفظ هنا: لا يُحفظ سوى النتيجة ووقتها وعنوانكم على الإنترنت.
identity-continue = متابعة
identity-minutes = { $minutes ->
    [one] لديكم دقيقة واحدة لذلك.
    [two] لديكم دقيقتان لذلك.
    [few] لديكم { $minutes } دقائق لذلك.
   *[other] لديكم { $minutes } دقيقة لذلك.
}
identity-code-sent = أُرسل رمز إلى هاتفكم.
identity-code = الرمز
identity-send = إرسال الإجابات
identity-checking = نتحقق من إجاباتكم.
identity-look-again = التحقق مرة أخرى
identity-unavailable = لا توجد سجلات كافية عنكم لطرح الأسئلة. هذا ليس خطأكم ولا تترتب عليه أي عواقب.
identity-enter-again = إذا أخطأتم في إدخالاتكم، فأدخلوها مرة أخرى.
identity-other-way = يمكن للمُرسِل ترتيب طريقة أخرى للتوقيع.
identity-also-other-way = يمكن للمُرسِل أيضًا ترتيب طريقة أخرى للتوقيع.
identity-try-again = المحاولة مرة أخرى
identity-wrong = { $left ->
    [1] إجابة واحدة على الأقل غير صحيحة. يمكنكم المحاولة مرة واحدة أخرى بأسئلة مختلفة.
    [2] إجابة واحدة على الأقل غير صحيحة. يمكنكم المحاولة مرتين أخريين بأسئلة مختلفة.
   *[other] إجابة واحدة على الأقل غير صحيحة. عدد المحاولات المتبقية بأسئلة مختلفة: { $left }.
}
identity-exhausted = استخدمتم جميع المحاولات.
identity-wait-minutes = { $minutes ->
    [1] يمكنكم المحاولة مرة أخرى بعد دقيقة.
    [two] يمكنكم المحاولة مرة أخرى بعد دقيقتين.
    [few] يمكنكم المحاولة مرة أخرى بعد { $minutes } دقائق.
   *[other] يمكنكم المحاولة مرة أخرى بعد { $minutes } دقيقة.
}
identity-wait-hours = { $hours ->
    [one] يمكنكم المحاولة مرة أخرى بعد ساعة.
    [two] يمكنكم المحاولة مرة أخرى بعد ساعتين.
    [few] يمكنكم المحاولة مرة أخرى بعد { $hours } ساعات.
   *[other] يمكنكم المحاولة مرة أخرى بعد { $hours } ساعة.
}
identity-needed = هذه المعلومة مطلوبة
identity-consent-needed = تلزم موافقتكم للمتابعة
identity-enter-code = أدخلوا الرمز
identity-choose = اختاروا إجابة
identity-phone-digits = أدخلوا رقم هاتف بالأرقام فقط
identity-phone-area = أدخلوا رقمكم مع رمز المنطقة
identity-enter-date = أدخلوا تاريخًا
identity-enter-birth = أدخلوا تاريخ ميلادكم
identity-four-digits = أدخلوا أربعة أرقام
identity-five-digits = أدخلوا خمسة أرقام
identity-two-letters = أدخلوا حرفَي الولاية
identity-hundred = أدخلوا 100 حرف كحد أقصى

## Public verification page

verify-unknown-title = لا يوجد سجل كهذا
verify-unknown = يرجى التحقق من العنوان، أو مسح الرمز الموجود على الشهادة مرة أخرى.
verify-record = السجل { $id }
verify-vaulted = موقّع من جميع الأطراف. النسخة ذات الحجية محفوظة في الخزنة.
verify-released = موقّع من جميع الأطراف. سُلّمت النسخة ذات الحجية إلى أمين حفظ آخر.
verify-paper = موقّع من جميع الأطراف. حلّ أصل ورقي محل النسخة ذات الحجية.
verify-signed = { $name }، وُقّع في { $moment }
verify-title = هل نسختكم هي الصحيحة؟
verify-choose = اختاروا ملفكم. تجري المقارنة على هذا الجهاز ولا يُرسل الملف إلى أي مكان.
verify-file = ملف PDF
verify-fingerprints = البصمات (SHA-256)
verify-copy = نسخة الأطراف
verify-authoritative = النسخة ذات الحجية
verify-comparing = جارٍ المقارنة…
verify-unsupported = لا يستطيع هذا المتصفح مقارنة الملفات. قارنوا البصمات أدناه ببرنامج مثل sha256sum.
verify-same = نعم: ملفكم هو { $name } دون تغيير.
verify-other = لا: ملفكم ملف آخر أو جرى تغييره. ويُعدّ مُغيَّرًا كل ملف طُبع ثم مُسح ضوئيًا أو أعاد برنامج حفظه.

## Certificate of completion

certificate-sent-by = أرسله
certificate-sent = وقت الإرسال
certificate-completed = وقت الإتمام
certificate-vaulted = في الخزنة منذ
certificate-reference = المرجع
certificate-signed-document = المستند الموقّع
certificate-authoritative = النسخة ذات الحجية
certificate-copy = نسخة الأطراف
certificate-opened = أول فتح
certificate-identity = التحقق من الهوية
certificate-identity-passed = أُجيب عن أسئلة الهوية، { $moment } (المزوّد { $provider })
certificate-consent = الموافقة الإلكترونية
certificate-signed = وقت التوقيع
certificate-file = ملف مرفق
certificate-address = العنوان على الإنترنت
certificate-browser = المتصفح
certificate-caption = امسحوا الرمز أو افتحوا العنوان للتحقق من هذا السجل ومن أن نسختكم هي المستند الذي وُقّع.

## Widgets in other pages

embed-title = لحظة من فضلكم
embed-opening = جارٍ فتح مستندكم…
embed-needs-script = تحتاج هذه الصفحة إلى JavaScript. افتحوا الرابط الوارد في بريدكم الإلكتروني بدلًا من ذلك.
embed-expired-title = انتهت صلاحية هذه الصفحة
embed-expired = ارجعوا إلى الصفحة السابقة وافتحوها مرة أخرى.
vault-download = تنزيل نسخة
vault-satisfied = مستوفى.
vault-not-satisfied = غير مستوفى.

## Mails

mail-hello = مرحبًا { $name }،
mail-hello-nobody = مرحبًا،
mail-button = { $label }:
mail-read-and-sign = قراءة المستند وتوقيعه
mail-link-note = هذا الرابط مخصص لكم وحدكم ويعمل لمدة سبعة أيام. يرجى عدم إعادة توجيه هذه الرسالة.
mail-deadline = يرجى التوقيع قبل { $moment }.
mail-others = الموقّعون الآخرون: { $signers }.
mail-other = { $name } ({ $role })
mail-other-signed = { $name } ({ $role }، تم التوقيع)
mail-invitation-subject = طلب توقيع من { $sender }: { $document }
mail-invitation = يطلب منكم { $sender } توقيع «{ $document }».
mail-reminder-subject = تذكير: { $sender } بانتظار توقيعكم: { $document }
mail-reminder = { $sender } بانتظار توقيعكم على «{ $document }».
mail-reminder-link = يمكنكم التوقيع بهذا الرابط الجديد. ربما انتهت صلاحية الروابط السابقة.
mail-completed-subject = اكتمل: { $document }
mail-completed = اكتمل «{ $document }»: وقّع جميع الأطراف.
mail-attached-certificate = المستند الموقّع مرفق، ومؤشَّر عليه كنسخة ليست لها حجية الأصل، مع شهادة تبيّن من وقّع ومتى.
mail-attached = المستند الموقّع مرفق، ومؤشَّر عليه كنسخة ليست لها حجية الأصل.
mail-linked = المستند الموقّع أكبر من أن يُرسل بالبريد الإلكتروني. يمكنكم تنزيل نسختكم خلال سبعة أيام.
mail-too-large = المستند الموقّع أكبر من أن يُرسل بالبريد الإلكتروني.
mail-declined-subject = مرفوض: { $document }
mail-declined-by = رفض { $name } توقيع «{ $document }».
mail-declined-reason = السبب المذكور: { $reason }
mail-declined-self = لقد رفضتم توقيع «{ $document }». وأُبلغ { $sender } بذلك.
mail-declined-contact = إذا لم ترفضوا، فيرجى التواصل مع { $sender }.
mail-declined-other = رفض موقّع آخر توقيع «{ $document }».
mail-declined-closed = المستند مغلق. لا يلزمكم القيام بأي شيء.
mail-withdrawn-subject = تم السحب: { $document }
mail-withdrawn = سحب { $sender } «{ $document }».
mail-withdrawn-closed = لم تعد روابطكم تفتحه. لا يلزمكم القيام بأي شيء.
mail-endpoint-receiver = جهة الاستقبال لديكم
mail-endpoint-failing-subject = لا تصل إشعارات Webhook إلى { $host }
mail-endpoint-failing-since = فشلت جميع محاولات تسليم حدث إلى { $host } منذ { $since }.
mail-endpoint-failing-days = تفشل منذ أيام جميع محاولات تسليم حدث إلى { $host }.
mail-endpoint-failing = بعد خمسة أيام من الفشل تُعطَّل نقطة النهاية وتُهمل عمليات التسليم المنتظرة.
mail-endpoint-disabled-subject = عُطّلت إشعارات Webhook الموجهة إلى { $host }
mail-endpoint-gone = عُطّلت نقطة نهاية Webhook في { $host }. كان ردّها 410 (gone).
mail-endpoint-failed = عُطّلت نقطة نهاية Webhook في { $host }. فشلت جميع المحاولات لمدة خمسة أيام.
mail-endpoint-disabled = لن تُحفظ الأحداث لها من الآن فصاعدًا. يرجى تفعيلها من جديد عند عودة جهة الاستقبال؛ ويمكن إعادة تسليم ما فات من سجلها.
mail-release-subject = تطلب { $originator } الإفراج عن { $document }
mail-release = تريد { $originator } تسليم النسخة المعتمدة من { $document } إلى { $recipient }. الغرض: { $purpose }
mail-release-paper = تريد { $originator } استبدال النسخة المعتمدة من { $document } بأصل ورقي لصالح { $recipient }. الغرض: { $purpose }
mail-release-answer = مؤسستك هي المتحكمة في هذا السجل. من دون موافقتك تبقى النسخة في الخزنة. أجب باستخدام المرجع أدناه.
mail-view = تتيح لك { $sender } الاطلاع على العقد الموقّع { $document }. يعمل الرابط حتى { $moment }.
mail-view-note = يُسجَّل كل اطلاع. هذا الرابط لك وحدك، فلا تُعِد إرساله.

## Kinds of signers

signing-for-approver = إلى { $name }، { $role } (للموافقة)
signing-for-witness = إلى { $name }، { $role } (للتوقيع بصفة شاهد)
signing-approve = موافقة
signing-download = تنزيل للقراءة
consent-approval = أوافق على هذا المستند إلكترونيًا. لموافقتي هنا الأثر نفسه الذي للموافقة الورقية.
signer-approver = { $role } (للموافقة)
signer-witness = { $role } (شاهد)

## Another person signs

delegate-summary = ينبغي أن يوقّع شخص آخر بدلًا مني
delegate-explained = لن يعمل رابطكم بعد ذلك، ويُبلَّغ المُرسِل بمن سمّيتموه.
delegate-name = اسم الشخص
delegate-email = عنوان البريد الإلكتروني للشخص
delegate-phone = الهاتف المحمول للشخص، مع رمز البلد
delegate-confirm = الطلب من هذا الشخص
delegate-name-missing = أدخلوا اسم الشخص
delegate-email-missing = أدخلوا عنوان بريد إلكتروني
delegate-phone-missing = أدخلوا رقم هاتف محمول مع رمز البلد
delegate-own-address = هذا عنوانكم أنتم
delegated-title = تمت الإحالة
delegated = طُلب من { $name } التوقيع بدلًا منكم. لا يلزمكم القيام بأي شيء آخر.

## A code before the document

code-title = أدخلوا الرمز
code-locked = أُدخلت رموز خاطئة كثيرة.
code-locked-until = { $minutes ->
    [1] يمكنكم المحاولة مرة أخرى بعد دقيقة. إذا لم تُدخلوا الرموز أنتم، فيرجى إبلاغ المُرسِل.
    [two] يمكنكم المحاولة مرة أخرى بعد دقيقتين. إذا لم تُدخلوا الرموز أنتم، فيرجى إبلاغ المُرسِل.
    [few] يمكنكم المحاولة مرة أخرى بعد { $minutes } دقائق. إذا لم تُدخلوا الرموز أنتم، فيرجى إبلاغ المُرسِل.
   *[other] يمكنكم المحاولة مرة أخرى بعد { $minutes } دقيقة. إذا لم تُدخلوا الرموز أنتم، فيرجى إبلاغ المُرسِل.
}
code-will-send = سنرسل رمزًا إلى { $address }.
code-sent = أرسلنا رمزًا إلى { $address }. يعمل الرمز لمدة عشر دقائق.
code-will-send-phone = سنرسل رسالة نصية فيها رمز إلى هاتفكم. ينتهي رقمه بـ { $digits }.
code-sent-phone = أرسلنا رسالة نصية فيها رمز إلى هاتفكم. ينتهي رقمه بـ { $digits }. يعمل الرمز لمدة عشر دقائق.
code-passcode = أدخلوا رمز الدخول الذي أعطاكم إياه المُرسِل.
code-label = الرمز
code-passcode-label = رمز الدخول
code-open = فتح المستند
code-send = إرسال رمز إليّ
code-send-another = إرسال رمز آخر
code-wrong = هذا ليس الرمز الصحيح. يرجى مراجعته والمحاولة مرة أخرى.
code-outdated = هذا الرمز قديم جدًا. يرجى طلب رمز جديد.
code-later = { $minutes ->
    [1] يمكنكم طلب رمز آخر بعد دقيقة.
    [two] يمكنكم طلب رمز آخر بعد دقيقتين.
    [few] يمكنكم طلب رمز آخر بعد { $minutes } دقائق.
   *[other] يمكنكم طلب رمز آخر بعد { $minutes } دقيقة.
}
certificate-code = الرمز قبل المستند
certificate-code-mailed = رمز مُرسَل بالبريد الإلكتروني، { $moment }
certificate-code-texted = رمز برسالة نصية إلى الرقم المنتهي بـ { $digits }، { $moment }
certificate-code-passcode = رمز الدخول من المُرسِل، { $moment }

## Page for readers

reading-hint = يمكنكم قراءة هذا المستند. لا يلزمكم توقيعه.
reading-signers = الموقّعون
reading-pending = { $name }، { $role }: لم يفتح المستند
reading-viewed = { $name }، { $role }: فتح المستند
reading-signed = { $name }، { $role }: تم التوقيع
reading-declined = { $name }، { $role }: تم الرفض
reading-closed-title = لا يوجد ما يُقرأ
reading-closed = هذا المستند غير مفتوح.
signed-first-page = الصفحة الأولى من المستند الموقّع

## Vault widget

vault-safe-title = محفوظ بأمان في الخزنة
vault-safe = يُحفظ الأصل هنا لدى { $keeper } دون تغيير منذ توقيعه. ولا يوجد سوى أصل واحد: كل نسخة مؤشَّر عليها بأنها نسخة.
vault-handed-over-title = تم التسليم
vault-handed-over = الأصل الآن لدى أمين حفظ آخر. تحتفظ هذه الصفحة بسجله.
vault-not-yet-title = ليس في الخزنة بعد
vault-not-yet = يُودَع الأصل في الخزنة بعد توقيع الجميع.
vault-since = في الخزنة منذ
vault-over-since = وقت التسليم
vault-responsible = الجهة المسؤولة
vault-kept-for = محفوظ لصالح
vault-who-signed = من وقّع
vault-signed-at = تم التوقيع في { $moment }
vault-unsigned = لم يتم التوقيع
vault-what-happened = ما الذي حدث
vault-experts = تفاصيل للخبراء
vault-record-number = رقم السجل
vault-hash = بصمة SHA-256 للأصل
vault-checks = عمليات التحقق المستوفاة من UCC §9-105:‏ { $passed } من { $total }
inspect-hint = تتيح لك { $sender } الاطلاع على هذا السجل حتى { $moment }. يُسجَّل كل اطلاع.
inspect-open = فتح السجل
inspect-control = التحكم
inspect-controller = تحت تحكم
inspect-since = منذ
inspect-originator = أنشأته
inspect-pledgee = مرهون لصالح
inspect-download = تنزيل نسخة بعلامة مائية
inspect-over-title = انتهى هذا الاطلاع
inspect-over = اطلب رابطًا آخر من المؤسسة التي أرسلت إليك هذا الرابط.
copy-line = نسخة لـ { $holder }، { $party } · { $moment } · { $purpose } · { $id }
copy-sold = بيع في { $moment }
paper-line = أصل ورقي للسجل { $id } · حُوّل في { $moment } لصالح { $recipient } · يحل محل النسخة الإلكترونية ذات البصمة SHA-256 { $hash }
join-title = تدعو { $sender } { $name }
join-hint = تريد { $sender } التنازل عن عقود لصالح { $name } هنا. انضم لتولّي التحكم فيها: تحصل { $name } على مؤسسة ومفتاح لواجهة البرمجة.
join-button = انضمام
join-done-title = انضمت { $name }
join-done = تلقّت { $sender } هذا المعرّف ويمكنها الآن تعيينك.
join-organization = معرّف مؤسستك
join-key = مفتاح واجهة البرمجة
join-keep = احفظ المفتاح في مكان آمن، فلن يُعرض مرة أخرى.
join-over-title = انتهت هذه الدعوة
join-over = استُخدمت أو مضت أيامها السبعة. اطلب دعوة أخرى.
statement-title = بيان التحكم
statement-controlled = تحت تحكم { $controller }
statement-still = لا يزال هذا صحيحًا الآن.
statement-over = انتقل التحكم منذ ذلك الحين، أو غادر الأصل الخزنة.
statement-issued = بتاريخ
statement-requested-by = صدر بطلب من
statement-jurisdiction = الولاية القضائية
statement-pdf = تنزيل بصيغة PDF
statement-json = تنزيل البيانات (JSON)
statement-chain = من كان له التحكم
statement-key = بصمة مفتاح التوقيع
statement-check = تحقق من هذا البيان على
statement-proof = الإثبات
statement-act-stored = حُفظ العقد
statement-act-accepted = تولّى التحكم
statement-act-transfer = تولّى التحكم بالنقل
statement-note = القيود المذكورة هنا جزء من سجل عام رأسه موقّع. يحتوي ملف البيانات عليها مع إثباتاتها، ويتحقق منه البرنامج holdfast-verify دون هذه الخدمة. يتعلق البيان باللحظة المذكورة أعلاه.
history-created = أُعدّ المستند
history-sent = أُرسل إلى الموقّعين
history-viewed = فتحه { $name }
history-signed = وقّع { $name }
history-signer = أحد الموقّعين
history-completed = وقّع الجميع
history-declined = رفض أحد الموقّعين
history-voided = سحبه المُرسِل
history-expired = انقضت مهلة التوقيع
history-stored = أُودع الأصل في الخزنة
history-released = سُلّم الأصل إلى { $recipient }
history-paper = حلّ أصل ورقي لصالح { $recipient } محل الأصل الإلكتروني
history-control = تولّت { $party } التحكم
history-recipient = أمين حفظ آخر
history-tampered = تبيّن أن الأصل المحفوظ قد تغيّر
history-changed = يوقّع { $name } بدلًا من { $previous }

## Mails about approving, witnessing, reading and codes

mail-approval-subject = طلب موافقة من { $sender }: { $document }
mail-approval = يطلب منكم { $sender } الموافقة على «{ $document }».
mail-witness-subject = طلب توقيع بصفة شاهد من { $sender }: { $document }
mail-witness = يطلب منكم { $sender } توقيع «{ $document }» بصفة شاهد.
mail-viewing-subject = يعرض عليكم { $sender }: { $document }
mail-viewing = أرسل { $sender } «{ $document }» إلى موقّعيه ويتيح لكم قراءته.
mail-viewing-copy = لا يلزمكم القيام بأي شيء. ستصلكم نسخة بعد توقيع جميع الأطراف.
mail-read = قراءة المستند
mail-code-subject = رمزكم: { $code }
mail-code = رمزكم لفتح «{ $document }» من { $sender } هو { $code }.
mail-code-use = { $minutes ->
    [one] أدخلوه في الصفحة التي طلبته. يعمل مرة واحدة، لمدة دقيقة واحدة.
    [two] أدخلوه في الصفحة التي طلبته. يعمل مرة واحدة، لمدة دقيقتين.
    [few] أدخلوه في الصفحة التي طلبته. يعمل مرة واحدة، لمدة { $minutes } دقائق.
   *[other] أدخلوه في الصفحة التي طلبته. يعمل مرة واحدة، لمدة { $minutes } دقيقة.
}
mail-code-note = لن يطلب منكم أحد هذا الرمز عبر الهاتف. إذا لم تطلبوه، فيرجى تجاهل هذه الرسالة.
text-invitation = يطلب منكم { $sender } توقيع «{ $document }»:
text-reminder = تذكير: ينتظر { $sender } توقيعكم على «{ $document }»:
text-code = { $code } هو رمزكم لفتح «{ $document }» من { $sender }. يعمل الرمز لمدة عشر دقائق. لن يطلبه منكم أحد عبر الهاتف.
custody-title = سجل الحفظ
custody-file-title = سجل حفظ { $id }
custody-file-subject = من احتفظ بالنسخة ذات الحجية من «{ $name }» ومنذ متى وكيف جرى التحقق من ذلك
custody-unnamed = مستند بلا اسم
custody-issued = أصدره { $issuer } في { $moment }
custody-recorded = سُجّل في { $moment }
custody-certificate = شهادة عمليات التحقق التي يعرضها هذا السجل
custody-not-given = غير مذكور
custody-envelope = الملف
custody-customer = العميل
custody-custodian = أمين الحفظ
custody-secured-party = الطرف المضمون
custody-documents = المستندات
custody-algorithm = خوارزمية البصمة
custody-copy = نسخة غير ذات حجية
custody-parties = الأطراف
custody-party = الطرف
custody-email = البريد الإلكتروني
custody-role = الدور
custody-unsigned = لم يوقّع
custody-checks = عمليات التحقق من السيطرة
custody-requirement = المتطلَّب
custody-reference = المرجع
custody-finding = النتيجة
custody-timeline = تسلسل الحفظ
custody-time = الوقت
custody-actor = من
custody-event = ماذا حدث
custody-made = كيف أُعدّ هذا السجل
custody-rules = مكوّن القواعد
custody-attachment = المرفق
custody-note = الشهادة المرفقة هي صيغة هذا السجل التي تقرؤها البرامج. يستطيع من لديه النسخة ذات الحجية تكرار كل تحقق: حساب البصمة المذكورة أعلاه على بايتات المستند ومقارنتها بهذا السجل وتشغيل المكوّن المذكور هنا على الوقائع المحفوظة.
custody-key = مفتاح API { $id }
custody-payer = { $email } (الدافع)
custody-second = تقييم ثانٍ
custody-second-score = الدرجة { $score }، بواسطة { $component } ({ $sha256 })
custody-rewritten = أعيدت كتابته
custody-seal = الختم
custody-seal-certificate = الشهادة { $sha256 } (SHA-256)
custody-unsealed = دون ختم: المستند مصدَّق ضد أي تغيير
custody-trusted-time = الوقت الموثوق
custody-stamped = { $moment }، من { $authority }
custody-stamped-unchecked = { $moment }، من { $authority } (جهة غير متحقَّق منها)
custody-no-time = لا يوجد وقت موثوق: { $reason }
custody-log = سجل جميع السجلات
custody-log-head = { $origin }: عدد القيود السابقة { $size }، الجذر { $root }
custody-existing-signature = توقيع سابق { $field }
custody-signature-valid = توقيع صحيح
custody-signature-valid-stamp = ختم زمني صحيح
custody-signature-altered = عُدِّل المستند بعد التوقيع
custody-signature-not-verifiable = تعذّر التحقق
custody-signature-signer = من { $signer }
custody-signature-stamped = بختم زمني في { $moment }
custody-signature-clock = بحسب ساعة الموقّع في { $moment }
custody-signature-level = المستوى { $level }
custody-signature-trusted = شهادة موثوقة
custody-signature-untrusted = شهادة غير موثوقة
custody-signature-trust-not-checked = لم تُفحص الشهادة مقابل شهادات الجذر
custody-signature-changed-content = غيّرت نسخة لاحقة المحتوى
custody-signature-changed-annotations = غيّرت نسخة لاحقة التعليقات التوضيحية
custody-signature-changed-fields = غيّرت نسخة لاحقة حقول النموذج
custody-signature-part = لا يغطي إلا جزءًا من نسخته
custody-picture = الملف المرفوع صورة ({ $type })؛ SHA-256 لملف PDF المنشأ منها: { $sha256 }
custody-repaired = لزم إصلاح بنية المستند؛ SHA-256 للمستند المُصلَح: { $sha256 }
custody-sandbox = بيئة تجريبية
custody-sandbox-note = جرت محاكاة دفعة أو تحقق من الهوية، وهذا لا يثبت شيئًا
custody-identity = الهوية
custody-identity-note = استخدم أحد الموقّعين متصفحًا غير الذي اجتاز التحقق من الهوية
custody-final = السجل النهائي
custody-final-note = أُودع الأصل في الخزنة ثم سُلّم إلى أمين حفظ آخر
custody-final-paper = أُودع الأصل في الخزنة ثم استُبدل بأصل ورقي
custody-handed-over-to = سُلّم إلى
custody-purpose = الغرض
custody-authorized-by = أذن به
custody-requested-by = طلبه
mark-secured-party = الطرف المضمون:
builder-done = تم
builder-undo = تراجع
builder-preview = معاينة
builder-save = حفظ
builder-new-fields = حقول جديدة
builder-add = إضافة حقل
builder-add-hint = اسحب حقلًا إلى صفحة، أو اضغط عليه لإضافته إلى الصفحة الظاهرة.
builder-signature = توقيع
builder-initials = أحرف أولى
builder-text = نص
builder-date = تاريخ
builder-number = رقم
builder-checkbox = مربع اختيار
builder-select = قائمة
builder-radio = خيارات
builder-attachment = ملف
builder-signed-by = يوقّعه
builder-add-role = إضافة دور
builder-role-name = اسم الدور
builder-role-example = مثلًا: البائع
builder-add-role-button = إضافة
builder-cancel = إلغاء
builder-document = المستند
builder-choose = اختر ملف PDF
builder-selected = الحقل المحدد
builder-selected-hint = حدد حقلًا في إحدى الصفحات. تحرّكه مفاتيح الأسهم، ومع Shift تغيّر حجمه، ويحذفه مفتاح Delete.
builder-edit = تعديل
builder-close = إغلاق
builder-name = الاسم
builder-role = الدور
builder-required = إلزامي
builder-fixed = ثابت: لا يستطيع الموقّع تغييره
builder-prefilled = القيمة المسبقة
builder-options = الخيارات، خيار في كل سطر
builder-rules = القواعد
builder-min = على الأقل (رقم، أو تاريخ مثل 2026-01-31 أو today أو today+30)
builder-max = على الأكثر
builder-max-length = أقصى عدد من الأحرف
builder-pattern = تعبير نمطي للنص كله
builder-message = الرسالة عندما لا يطابق النص
builder-formula = معادلة، مثل [السعر] * [النسبة] / 100
builder-decimals = المنازل العشرية للنتيجة
builder-condition = يظهر إذا (Field أو Field:value أو ‎!Field أو ‎!Field:value)
builder-required-if = إلزامي إذا
builder-remove = إزالة هذا الحقل
builder-preview-as = بصفة
builder-preview-frame = ما سيراه الموقّع
builder-sample-signer = موقّع للمثال
builder-ended = انتهت هذه الجلسة. افتح المحرر من جديد.
builder-no-answer = لم يصل رد. حاول مرة أخرى.
builder-page-not-shown = تعذر عرض إحدى الصفحات.
builder-box = { $kind } { $name }، الدور { $role }، الصفحة { $page }
builder-no-room = لا يوجد مكان في هذه الصفحة.
builder-option = الخيار { $number }
builder-role-exists = هذا الدور موجود بالفعل.
builder-role-missing = أدخل اسمًا.
builder-uploading = جارٍ الرفع…
builder-imported = الحقول المأخوذة من نموذج المستند: { $count }
builder-problem-needed = ينقص شيء ما، أو هناك قيمة أصغر من اللازم.
builder-problem-too-large = هناك قيمة أكبر من اللازم أو نص أطول من اللازم.
builder-problem-kind = هناك قيمة من نوع غير صحيح.
builder-problem-page = لا توجد هذه الصفحة في المستند.
builder-problem-outside = يقع الحقل خارج صفحته.
builder-problem-type = يوجد حقل بهذا الاسم من نوع آخر.
builder-problem-rule = لا يمكن أن تكون هذه القاعدة لحقول من هذا النوع.
builder-problem-pattern = لا يمكن استخدام هذا التعبير النمطي.
builder-problem-condition = تعذّرت قراءة هذا الشرط.
builder-problem-formula = تعذّرت قراءة هذه الصيغة.
builder-problem-unknown-field = تذكر قاعدة حقلًا غير موجود.
builder-problem-circular = تعتمد قاعدة على نتيجتها هي.
builder-problem-fields = لم يُحفظ: في بعض الحقول أخطاء.
builder-problem-changed = لم يُحفظ: تغيّر القالب في مكان آخر. افتح المحرر من جديد.
builder-problem-file = لا يمكن استخدام هذا الملف. اختر ملف PDF بلا كلمة مرور.

## Console

sign-in-subject = تسجيل الدخول إلى { $organization }
sign-in-mail = يسجّل هذا الرابط دخولك باسم { $email }. يعمل مرة واحدة حتى { $until }.
sign-in-note = إذا لم تطلبه فتجاهل هذه الرسالة: لا يدخل أحد من دون الرابط.
sign-in-button = تسجيل الدخول
sign-in-title = تسجيل الدخول
sign-in-hint = ستصلك رسالة فيها رابط. لا توجد كلمة مرور.
sign-in-email = البريد الإلكتروني
sign-in-send = أرسل لي رابطًا
sign-in-sent-title = تحقق من بريدك
sign-in-sent = إذا كان لأحد حق الدخول بهذا العنوان فالرابط في الطريق. يعمل مرة واحدة ولمدة 15 دقيقة.
sign-in-as = تسجّل الدخول باسم { $email } لدى { $organization }.
sign-in-over-title = انتهت صلاحية هذا الرابط
sign-in-over = استُخدم من قبل أو انتهى وقته.
console-navigation = الصفحات
console-home = الرئيسية
console-envelopes = المغلفات
console-users = المستخدمون
console-sessions = دخولك
console-sign-out = تسجيل الخروج
console-forbidden-title = غير متاح لدورك
console-forbidden = لا يسمح دورك بذلك، أو أن النموذج قديم. ارجع وأعد تحميل الصفحة.
console-no-envelopes = لا يقرأ دورك المغلفات.
console-waiting = بانتظار التوقيع
console-signed = موقّعة وليست في الخزنة بعد
console-declined = مرفوضة
console-below = في الخزنة بأقل من 100
console-findings = تغيّرت مستندات محفوظة
console-nothing = لا شيء هنا.
console-all = عرض الكل
console-older = مغلفات أقدم
console-search = بحث
console-search-hint = الاسم أو الشخص أو الرقم أو الرقم الخارجي
console-status = الحالة
console-all-statuses = الكل
console-score = الدرجة { $score }
console-people = الأشخاص
console-signed-at = وقّع في
console-unsigned = لم يوقّع
console-checks = فحوص القانون: { $score } من 100
console-stuck = هذا المستند موقّع وليس في الخزنة:
console-remind = إرسال تذكير
console-reminded = سيصل الموقّعين رابط جديد.
console-void = إلغاء
console-voided = أُلغي المغلف.
console-reason = السبب
console-verify = تحقق الآن
console-verified = الدليل صالح.
console-not-verified = الدليل غير صالح:
console-sessions-hint = المتصفحات التي سجّلت الدخول فيها.
console-this-session = هذا المتصفح
console-signed-in = سُجّل الدخول في
console-end-session = إنهاء
console-invite = دعوة
console-invited = لم يسجّل الدخول بعد
console-ended = لم يعد له حق الدخول
console-role = الدور
console-change = تغيير
console-change-role = تغيير الدور
console-invite-again = إرسال رابط آخر
console-end-access = إنهاء حق الدخول
status-pending = قيد الانتظار
status-uploaded = مرفوع
status-preparing = قيد التحضير
status-sent = مرسل
status-viewed = مفتوح
status-completed = موقّع
status-vaulted = في الخزنة
status-vaulted-out = مسلّم
status-declined = مرفوض
status-voided = ملغى
status-expired = منتهي الصلاحية
role-owner = المالك
role-admin = الإدارة
role-sender = المرسل
role-compliance = الامتثال
role-auditor = التدقيق
role-controller = المتحكم
role-developer = المطور
role-member = عضو
console-developers = التطوير
console-audit = من فعل ماذا
console-receivers = مستقبلو الإشعارات
console-keys = مفاتيح الواجهة
console-active = نشط
console-inactive = معطّل
console-failing = يفشل منذ
console-last-used = آخر استخدام
console-deliveries = عمليات التسليم
console-newer = الأحدث
console-earlier = الأقدم
console-attempts = المحاولات
console-no-answer = لا جواب
console-send-again = إرسال مرة أخرى
console-content = المحتوى
delivery-pending = قيد الانتظار
delivery-delivered = سُلّم
delivery-failed = فشل
console-rules = القواعد
console-in-force = السارية
console-since = منذ
console-planned = مخطط لـ
console-requests = طلبات التغيير
console-policy = الموافقات التي يحتاجها التغيير: { $count }
console-roll-back = التراجع
console-policy-change = سياسة التغييرات
console-approvals = { $given } من { $required } موافقات
console-compared = { $differing } من { $compared } سجلات مختلفة
change-open = مفتوح
change-applied = مطبّق
change-refused = مرفوض
change-withdrawn = مسحوب
change-outdated = متجاوَز
change-expired = منتهي
review-approve = موافقة
review-refuse = رفض
review-comment = تعليق
console-export = تصدير بصيغة CSV
console-from = أُنشئ من
console-to = حتى
console-open-sessions = الجلسات المفتوحة
console-back = رجوع
passkeys-title = مفاتيح المرور
passkeys-hint = يتيح لك مفتاح المرور الدخول بلا بريد: بهذا الجهاز أو هاتفك أو مفتاح أمان.
passkey-name = اسم الجهاز
passkey-add = إضافة مفتاح مرور
passkey-added = أضيف في
passkey-remove = إزالة
passkey-sign-in = الدخول بمفتاح مرور
passkey-failed = لم يستجب الجهاز. حاول مرة أخرى أو استخدم الرابط بالبريد.
passkey-refused-title = لم يُقبل
passkey-refused = لم يُقبل مفتاح المرور هذا. ربما يخص صفحة أخرى أو انتهى الوقت.
passkey-signs = يوقّع مفتاح المرور هذا أعمال السيطرة لمؤسستك. ألغِ مفتاحه أولاً.
passkey-too-many = لديك 20 مفتاح مرور. أزل واحداً أولاً.
passkey-duplicate = مفتاح المرور هذا مسجل من قبل.
confirm-title = هل هذا أنت؟
confirm-hint = يحتاج هذا الإجراء إلى تأكيد خلال الدقائق العشر الأخيرة.
confirm-passkey = التأكيد بمفتاح مرور
confirm-mail = أرسل لي رابطاً بدلاً من ذلك
console-control = السيطرة
control-mine = تحت سيطرتك
control-offered = معروضة عليك
control-pledged = مرهونة لك
control-originated = أنشأتها أنت
control-choose = اختيار
control-release-waits = تسليم ينتظر الرد
control-transfers = عمليات النقل
control-keys = مفاتيح التوقيع
control-parts = دورك في السجلات
control-buyer = المشتري
control-price = مرجع السعر
control-atomic = كل السجلات معاً أو لا شيء
control-originator = المُنشئ
control-controller = صاحب السيطرة
control-designee = صاحب السيطرة المعيّن
control-pledgee = الدائن المرتهن
control-parties = الأطراف
control-copy = نسخة بعلامة مائية
control-copy-hint = تحمل النسخة في كل صفحة اسمك والوقت والغرض. ويُسجَّل الاطلاع لجميع الأطراف.
control-purpose = الغرض
control-offered-to-you = عُرض عليك هذا السجل
control-pledge = الرهن
control-terms = الشروط
control-until = حتى
control-tape = جدول السجلات بصيغة CSV
control-transfer = نقل
control-records = السجلات
control-keys-hint = مع وجود مفتاح لا يستطيع المشغّل ولا من سرق مفتاح API التصرف باسم مؤسستك: يحتاج كل عمل سيطرة بعدها إلى بيان موقّع به. ويمكن أن يكون مفتاح المرور هذا المفتاح.
release-recipient = اسم المستلم
release-organization = مؤسسة المستلم
release-email = بريد المستلم
release-purpose = غرض التسليم
release-signature = اسمك كتوقيع
release-medium = الشكل
release-electronic = إلكتروني
release-paper = ورقي
release-acknowledge-copy = هذا يسلّم النسخة المعتمدة
release-acknowledge-custody = تنتهي سلسلة الحفظ هنا
stage-originated = لدى المُنشئ
stage-designated = معروض
stage-controlled = تحت السيطرة
stage-proposed = ضمن عرض
stage-accepted = قبله المشتري
stage-released = سُلِّم
transfer-in-progress = جارٍ
transfer-proposed = معروض
transfer-accepted = مقبول
transfer-confirmed = مؤكَّد
transfer-cancelled = ملغى
transfer-expired = منتهٍ
transfer-failed = فشل
act-designate = عرض السيطرة
act-accept = تولي السيطرة
act-decline = رفض
act-consent = الموافقة على التسليم
act-refuse = رفض التسليم
act-release = تسليم النسخة المعتمدة
act-pledge = رهن
act-release-pledge = فك الرهن
act-offer = عرض على المشتري
act-accept-transfer = قبول العرض
act-confirm-transfer = تأكيد
act-cancel-transfer = إنهاء النقل
act-register-key = توقيع الأعمال بمفتاح المرور هذا
act-revoke-key = إلغاء
sign-statement-title = وقّع هذا البيان
sign-statement-hint = توقّع مؤسستك أعمال السيطرة. اقرأ البيان؛ يوقّع جهازك هذا النص بعينه.
sign-statement = التوقيع بمفتاح مرور
sign-statement-no-key = لا شيء من مفاتيح مرورك مفتاح لمؤسستك. يمكن لشخص آخر أو لبرنامج يملك المفتاح القيام بهذا العمل.
released-title = سُلِّم
released-hint = هذه الروابط صالحة لوقت قصير. يقود الأول إلى النسخة المعتمدة ويصلح لتنزيل واحد.
mail-release-open = عرض الطلب
rules-change = طلب تغيير
rules-compare-past = المقارنة على سجلات سابقة
rules-compare-generated = المقارنة على بيانات مولّدة
rules-review = المراجعة
rules-comment = تعليق
rules-approve = موافقة
rules-refuse = رفض
rules-send-review = إرسال المراجعة
rules-apply = تنفيذ التغيير
rules-compare-again = المقارنة مرة أخرى
rules-withdraw = سحب
rules-no-difference = لا فرق.
rules-check = الفحص
rules-direction = الاتجاه
rules-count = العدد
rules-before = قبل
rules-after = بعد
rules-example = مثال
rules-facts = البيانات
rules-asked = { $asked } سؤالاً، { $differing } بجواب مختلف
rules-differences = الفروق
rules-dates = تواريخ السريان
rules-upload = رفع مكوّن
rules-file = المكوّن (.wasm)
rules-name = الاسم
rules-version = الإصدار
rules-signature = التوقيع (Ed25519، base64) إن كان مطلوباً
rules-live = مقارنة جارية
rules-components = المكوّنات
rules-history = السجل
rules-rolled-back = أُعيد
rules-request-change = طلب التغيير
rules-request-activation = طلب تفعيله
rules-signed-by = موقّع من
rules-vectors = قُبل مع { $count } حالة اختبار، منها { $own } خاصة به
rules-instance = نسخة المزوّد
rules-source-url = عنوان المصدر
rules-source-commit = إيداع المصدر
rules-effective = ساري من (UTC)؛ فارغ: فوراً
rules-compare-first = المقارنة على سجلات سابقة أولاً
rules-emergency = طارئ: موافقة واحدة الآن والبقية لاحقاً
direction-stricter = أشد
direction-looser = أقل شدة
direction-text = النص فقط
direction-other = آخر
console-not-done = لم يُنفَّذ
console-why = السبب: القرارات وبياناتها
console-law = القانون
