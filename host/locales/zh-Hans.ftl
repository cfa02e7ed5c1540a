# 简体中文，使用敬称“您”。

## Common

list-separator = 、
moment = { $date } { $time }（{ $zone }）
amount = { $currency } { $number }
yes = 是
no = 否
reference = 编号：{ $id }

## Errors as pages

error-missing-title = 此页面不存在
error-missing = 请重新打开邮件中的链接，或向发件人索取新链接。
error-refused-title = 此链接无法使用
error-refused = 链接可能已过期或不完整。请向发件人索取新链接。
error-changed-title = 目前无法进行此操作
error-changed = 文件在此期间已发生变化。请重新打开邮件中的链接。
error-incomplete-title = 缺少内容
error-incomplete = 请返回重试，或重新打开邮件中的链接。
error-busy-title = 请稍候
error-busy = 此链接在短时间内使用过于频繁。请等待一分钟后重试。
error-large-title = 文件过大
error-large = 图片过大。请返回并使用较小的图片。
error-slow-title = 连接速度过慢
error-slow = 您填写的内容未能及时送达。请返回重试。
error-unavailable-title = 目前不可用
error-unavailable = 您的链接有效，已保存的内容不会丢失。请几分钟后重试。
error-failed-title = 出现问题
error-failed = 已保存的内容不会丢失。请几分钟后重试，或联系发件人。

## Signing form

signing-for = 签署人：{ $name }，{ $role }
signing-reading-view = 阅读视图
signing-document = 文件
signing-page = 第 { $number } 页，共 { $count } 页
signing-page-text = 第 { $number } 页的文字
signing-your-fields = 您的填写项
signing-title = 填写并签名
signing-progress = 必填项已完成 { $done }/{ $total }
signing-problems = 请检查以下各项：
signing-consent-field = 您的同意
signing-reason-field = 您的理由
signing-document-field = 文件
signing-required = （必填）
signing-fixed = （不可更改）
signing-choose = 请选择…
signing-type-name = 请输入您的姓名
signing-type-initials = 请输入您的姓名缩写
signing-your-signature = 您的签名
signing-sign-again = 重新签名
signing-not-filled-in = 未填写
signing-style = 输入签名的字体
signing-style-casual = 随意字体
signing-style-formal = 正式字体
signing-style-light = 纤细字体
signing-check = 检查您的填写内容
signing-finish = 完成并签名
signing-check-first = 先检查
signing-save = 保存，稍后继续
signing-back = 上一步
signing-next = 下一步
signing-start = 开始
signing-continue = 继续
signing-skip = 跳过
signing-check-and-sign = 检查并签名
signing-not-answered = 未作答：视为“否”
signing-how-to-give = 输入方式：{ $field }
signing-type = 输入
signing-draw = 手写
signing-upload = 上传
signing-use-mine = 使用我的签名
signing-sign-as = 以 { $name } 签名
signing-initial-as = 以 { $name } 签缩写
signing-draw-hint = 请用手指、手写笔或鼠标书写
signing-clear = 清除
signing-drawing-area = 手写区域：{ $field }
signing-choose-picture = 请选择您的签名图片（PNG 或 JPEG）
signing-picture = 图片：{ $field }
signing-picture-unreadable = 此文件无法作为图片读取。
signing-saving = 正在保存…
signing-saved = 已保存
signing-preview = 这是预览：不会保存或签署任何内容。
signing-offline = 没有网络连接。您填写的内容保留在此处，连接恢复后即会保存。
signing-offline-finish = 没有网络连接。您填写的内容保留在此处，请在连接恢复后签名。
signing-no-text = 此页没有文字。
signing-text-failed = 无法加载文字。
mark-sign = 签名
mark-initial = 签缩写
mark-date = 日期
mark-fill-in = 填写
mark-attach = 附件
attachment-add = 附上
attachment-remove = 移除
attachment-hint = 不超过 { $limit } MB 的 PDF、PNG 或 JPEG 文件。它将成为文档的一部分。
attachment-files = 附件
attachment-failed = 文件未能发送，请重试。

## Consent

consent-statement = 我同意以电子方式签署此文件。我在此处的签名与纸质文件上的签名具有同等效力。
consent-about = 关于电子签名
consent-disclosure = 您可以拒绝，并要求发件人改为提供纸质文件。您将通过电子邮件收到已签署文件的副本，可用任何 PDF 阅读器阅读并打印。签署时间、您的互联网地址和浏览器名称将与您的签名一并保存。

## Declining

decline-summary = 我不想签署
decline-reason = 理由
decline-open = 拒绝…
decline-warning = 拒绝后，此文件将对所有各方关闭，且无法撤销。您的理由将告知发件人。
decline-confirm = 拒绝并对所有各方关闭

## Problems of entries

problem-required = 此项为必填
problem-unsigned = 请在此处或您的其他签名处签名
problem-consent = 需要您同意以电子方式签署
problem-document-changed = 您打开文件后，另一位签署人已签署。请重新查看各页
problem-reason = 请说明拒绝的理由
problem-too-long = 最多 { $limit } 个字符
problem-number = 请输入数字
problem-date = 请按“年-月-日”输入日期
problem-option = 请选择其中一项
problem-too-small = 不得小于 { $limit }
problem-too-big = 不得大于 { $limit }
problem-too-early = 不得早于 { $limit }
problem-too-late = 不得晚于 { $limit }
problem-result-changed = 结果已更改，请核对
problem-pattern = 填写的内容不符合要求的格式
problem-attachment-size = 请附上不超过 { $limit } MB 的文件
problem-attachments-size = 所有文件合计不得超过 { $limit } MB
problem-attachment-type = 请附上 PDF、PNG 或 JPEG 文件
problem-attachment-pages = 请附上不超过 { $limit } 页的 PDF
problem-attachment-unreadable = 无法读取此文件。文件可能已损坏或需要密码
problem-picture-format = 请使用 PNG 或 JPEG 图片
problem-picture-size = 请使用不超过 { $limit } KB 的图片
problem-picture-unreadable = 无法读取此图片

## Pages of a signing link

link-unknown-title = 此链接无法使用
link-unknown = 请检查链接是否完整，或向发件人索取新链接。
link-expired-title = 此链接已过期
link-expired = 为保护您的文件，链接仅在限定时间内有效。
link-renew = 通过邮件发送新链接
link-mailed-title = 邮件已发出
link-mailed = 请查看收件箱：链接已发送到您收到邀请的地址。
link-too-soon-title = 请查看收件箱
link-too-soon = 我们几分钟前已向您发送邮件。请查看收件箱，或稍后重试。
replaced-title = 签署人已更换
replaced = 已请另一人代替您签署。
incomplete-title = 缺少内容
incomplete = 请返回重试。
withdrawn-title = 已撤回
withdrawn = 发件人已撤回此文件。
expired-title = 已过期
expired = 此文件的签署期限已过。
declined-by-other-title = 已拒绝
declined-by-other = 另一位签署人已拒绝此文件。
nothing-to-sign-title = 没有需要签署的内容
nothing-to-sign = 此文件目前不可签署。
closed-title = 此文件已关闭
closed = 已无法签署。
unavailable-title = 目前不可用
unavailable-document = 目前无法显示文件。您的链接有效，请几分钟后重试。
unavailable-identity = 目前无法核实您的身份。您的链接有效，请几分钟后重试。
unavailable-payment = 目前无法付款。您的链接有效，请几分钟后重试。
not-yet-title = 尚未轮到您
not-yet = { $name } 先于您签署。轮到您时，您将收到邮件。
not-yet-other = 另一人先于您签署。轮到您时，您将收到邮件。
signed-thanks = 谢谢
signed-title = 您已签署
signed-document = 您已签署“{ $document }”。
signed-still-to-sign = 尚待签署：
signed-copy-later = 所有各方签署后，您将通过邮件收到副本。
signed-copy-expired = 所有各方均已签署。此链接已过期，我们将通过邮件发送您的副本。
signed-mail-copy = 通过邮件发送我的副本
signed-copy-ready = 所有各方均已签署。请下载您的副本；我们也会通过邮件发送。
signed-download = 下载您的副本
signed-certificate = 下载签署完成证书
certificate-name = 签署完成证书
continue-to = 前往 { $host }
close-page = 您可以关闭此页面。
you-declined-title = 您已拒绝
you-declined = 我们已通知发件人。

## Payment

payment-title = 付款
payment-for = 用于“{ $document }”
payment-due = 应付金额：
payment-pay = 支付 { $amount }
payment-other-way = 发件人将以其他方式收取此款项。
payment-needs-script = 付款需要浏览器启用 JavaScript。
payment-back = 返回文件
payment-received-title = 已收到付款
payment-paid = 已支付：
payment-sandbox = 这是用于开发的测试环境：不会发生资金往来。
payment-load-failed = 无法加载付款表单。
payment-failed = 付款未成功。

## Identity check

identity-title = 确认您的身份
identity-before = 打开“{ $document }”之前，发件人需要确认是您本人。
identity-code-title = 请输入验证码
identity-questions-title = 请回答以下问题
identity-wrong-title = 您的回答不正确
identity-wait-title = 请稍后再来
identity-exhausted-title = 已无剩余次数
identity-busy-title = 请稍候
identity-unavailable-title = 无法核实您的身份
identity-time-over = 时限已过。您可以重新开始。
identity-wrong-code = 验证码不正确。我们已向您发送新的验证码。
identity-not-accepted = 您填写的内容未被接受。请检查后重试。
identity-too-many = 请求验证码的次数过多。请稍等片刻后重试。
identity-try-later = 身份核实服务没有回应。请稍后重试。
identity-first-name = 名
identity-last-name = 姓
identity-phone = 手机号码
identity-birth = 出生日期
identity-ssn = 您的 SSN 后四位
identity-line1 = 街道地址
identity-line2 = 公寓或单元
identity-city = 城市
identity-state = 州
identity-zip = 邮政编码
identity-consent = 我同意将这些信息发送给身份核实服务机构，由其查询与我有关的记录，并据此提出我能够回答的问题。
identity-kept = 这些信息仅用于本次核实，不在此处保存：仅保存结果、时间和您的互联网地址。
identity-continue = 继续
identity-minutes = { $minutes ->
   *[other] 您有 { $minutes } 分钟时间。
}
identity-code-sent = 验证码已发送到您的手机。
identity-code = 验证码
identity-send = 提交回答
identity-checking = 我们正在核对您的回答。
identity-look-again = 再次查看
identity-unavailable = 与您有关的记录不足，无法提出问题。这不是您的过错，也不会产生任何后果。
identity-enter-again = 如果填写有误，请重新填写。
identity-other-way = 发件人可以安排其他签署方式。
identity-also-other-way = 发件人也可以安排其他签署方式。
identity-try-again = 重试
identity-wrong = { $left ->
   *[other] 至少有一个回答不正确。您还可以用其他问题再试 { $left } 次。
}
identity-exhausted = 您已用完所有次数。
identity-wait-minutes = { $minutes ->
   *[other] 您可以在 { $minutes } 分钟后重试。
}
identity-wait-hours = { $hours ->
   *[other] 您可以在 { $hours } 小时后重试。
}
identity-needed = 此项为必填
identity-consent-needed = 需要您的同意才能继续
identity-enter-code = 请输入验证码
identity-choose = 请选择一个答案
identity-phone-digits = 请只用数字输入电话号码
identity-phone-area = 请输入含区号的号码
identity-enter-date = 请输入日期
identity-enter-birth = 请输入您的出生日期
identity-four-digits = 请输入四位数字
identity-five-digits = 请输入五位数字
identity-two-letters = 请输入州的两个字母
identity-hundred = 最多输入 100 个字符

## Public verification page

verify-unknown-title = 没有此记录
verify-unknown = 请检查地址，或重新扫描证书上的二维码。
verify-record = 记录 { $id }
verify-vaulted = 所有各方均已签署。权威副本存于保险库。
verify-released = 所有各方均已签署。权威副本已移交给另一保管人。
verify-paper = 所有各方均已签署。纸质原件已取代权威副本。
verify-signed = { $name }，签署于 { $moment }
verify-title = 您的副本是正确的文件吗？
verify-choose = 请选择您的文件。比对在此设备上进行，文件不会发送到任何地方。
verify-file = PDF 文件
verify-fingerprints = 指纹（SHA-256）
verify-copy = 各方所持副本
verify-authoritative = 权威副本
verify-comparing = 正在比对…
verify-unsupported = 此浏览器无法比对文件。请用 sha256sum 等程序比对下方的指纹。
verify-same = 是：您的文件是{ $name }，未经更改。
verify-other = 否：您的文件是另一份文件，或已被更改。打印后扫描的文件，或由程序重新保存的文件，均视为已更改。

## Certificate of completion

certificate-sent-by = 发件人
certificate-sent = 发送时间
certificate-completed = 完成时间
certificate-vaulted = 入库时间
certificate-reference = 编号
certificate-signed-document = 已签署的文件
certificate-authoritative = 权威副本
certificate-copy = 各方所持副本
certificate-opened = 首次打开
certificate-identity = 身份核实
certificate-identity-passed = 已回答身份问题，{ $moment }（服务机构 { $provider }）
certificate-consent = 电子签署同意
certificate-signed = 签署时间
certificate-file = 附加文件
certificate-address = 互联网地址
certificate-browser = 浏览器
certificate-caption = 扫描二维码或打开网址，即可核对此记录以及您的副本是否为所签署的文件。

## Widgets in other pages

embed-title = 请稍候
embed-opening = 正在打开您的文件…
embed-needs-script = 此页面需要 JavaScript。请改用邮件中的链接打开。
embed-expired-title = 此页面已过期
embed-expired = 请返回上一页并重新打开。
vault-download = 下载副本
vault-satisfied = 符合。
vault-not-satisfied = 不符合。

## Mails

mail-hello = { $name }，您好：
mail-hello-nobody = 您好：
mail-button = { $label }：
mail-read-and-sign = 阅读并签署文件
mail-link-note = 此链接仅供您本人使用，七天内有效。请勿转发此邮件。
mail-deadline = 请于 { $moment } 前签署。
mail-others = 其他签署人：{ $signers }。
mail-other = { $name }（{ $role }）
mail-other-signed = { $name }（{ $role }，已签署）
mail-invitation-subject = { $sender } 请您签署：{ $document }
mail-invitation = { $sender } 请您签署“{ $document }”。
mail-reminder-subject = 提醒：{ $sender } 正在等待您签署：{ $document }
mail-reminder = { $sender } 正在等待您签署“{ $document }”。
mail-reminder-link = 您可以使用此新链接签署。旧链接可能已过期。
mail-completed-subject = 已完成：{ $document }
mail-completed = “{ $document }”已完成：所有各方均已签署。
mail-attached-certificate = 附件为已签署的文件（标明为非权威副本），以及记载签署人和签署时间的证书。
mail-attached = 附件为已签署的文件，标明为非权威副本。
mail-linked = 已签署的文件过大，无法随邮件发送。您可以在七天内下载副本。
mail-too-large = 已签署的文件过大，无法随邮件发送。
mail-declined-subject = 已拒绝：{ $document }
mail-declined-by = { $name } 已拒绝签署“{ $document }”。
mail-declined-reason = 所述理由：{ $reason }
mail-declined-self = 您已拒绝签署“{ $document }”。已通知 { $sender }。
mail-declined-contact = 如果您没有拒绝，请联系 { $sender }。
mail-declined-other = 另一位签署人已拒绝签署“{ $document }”。
mail-declined-closed = 此文件已关闭。您无需采取任何行动。
mail-withdrawn-subject = 已撤回：{ $document }
mail-withdrawn = { $sender } 已撤回“{ $document }”。
mail-withdrawn-closed = 您的链接已无法打开该文件。您无需采取任何行动。
mail-endpoint-receiver = 您的接收端
mail-endpoint-failing-subject = Webhook 无法送达 { $host }
mail-endpoint-failing-since = 自 { $since } 起，向 { $host } 投递事件的所有尝试均告失败。
mail-endpoint-failing-days = 数日以来，向 { $host } 投递事件的所有尝试均告失败。
mail-endpoint-failing = 连续失败五天后，该端点将被停用，等待中的投递将被丢弃。
mail-endpoint-disabled-subject = 发往 { $host } 的 Webhook 已停用
mail-endpoint-gone = 位于 { $host } 的 Webhook 端点已停用。它返回了 410 (gone)。
mail-endpoint-failed = 位于 { $host } 的 Webhook 端点已停用。五天内的所有尝试均告失败。
mail-endpoint-disabled = 从现在起不再为其保留事件。接收端恢复后请重新启用；错过的事件可从其日志中重新投递。
mail-release-subject = { $originator } 请求放行 { $document }
mail-release = { $originator } 希望将 { $document } 的权威副本交给 { $recipient }。用途：{ $purpose }
mail-release-paper = { $originator } 希望以交给 { $recipient } 的纸质原件取代 { $document } 的权威副本。用途：{ $purpose }
mail-release-answer = 贵组织控制此记录。未经贵方同意，副本将保留在保管库中。请使用下面的编号答复。
mail-view = { $sender } 允许您查看已签署的合同 { $document }。链接有效期至 { $moment }。
mail-view-note = 每次查看都会被记录。此链接仅供您本人使用，请勿转发。

## Kinds of signers

signing-for-approver = 批准人：{ $name }，{ $role }
signing-for-witness = 见证人：{ $name }，{ $role }（以见证人身份签署）
signing-approve = 批准
signing-download = 下载阅读
consent-approval = 我以电子方式批准此文件。我在此处的批准与纸质文件上的批准具有同等效力。
signer-approver = { $role }（批准人）
signer-witness = { $role }（见证人）

## Another person signs

delegate-summary = 应由另一人代替我签署
delegate-explained = 此后您本人的链接将失效，您指定的人选将告知发件人。
delegate-name = 此人的姓名
delegate-email = 此人的电子邮件地址
delegate-phone = 此人的手机号码（含国家代码）
delegate-confirm = 请此人签署
delegate-name-missing = 请输入此人的姓名
delegate-email-missing = 请输入电子邮件地址
delegate-phone-missing = 请输入含国家代码的手机号码
delegate-own-address = 这是您自己的地址
delegated-title = 已转交
delegated = 已请 { $name } 代替您签署。您无需再采取任何行动。

## A code before the document

code-title = 请输入验证码
code-locked = 输入错误的次数过多。
code-locked-until = { $minutes ->
   *[other] 您可以在 { $minutes } 分钟后重试。如果这些验证码不是您输入的，请告知发件人。
}
code-will-send = 我们将向 { $address } 发送验证码。
code-sent = 我们已向 { $address } 发送验证码，十分钟内有效。
code-will-send-phone = 我们将向您的手机发送含验证码的短信，号码末尾为 { $digits }。
code-sent-phone = 我们已向您的手机发送含验证码的短信，号码末尾为 { $digits }。验证码十分钟内有效。
code-passcode = 请输入发件人提供给您的访问码。
code-label = 验证码
code-passcode-label = 访问码
code-open = 打开文件
code-send = 向我发送验证码
code-send-another = 再发送一个验证码
code-wrong = 输入的内容不正确。请检查后重试。
code-outdated = 此验证码已过期。请索取新的验证码。
code-later = { $minutes ->
   *[other] 您可以在 { $minutes } 分钟后再次索取验证码。
}
certificate-code = 打开文件前的验证码
certificate-code-mailed = 邮件验证码，{ $moment }
certificate-code-texted = 短信验证码，号码末尾为 { $digits }，{ $moment }
certificate-code-passcode = 发件人提供的访问码，{ $moment }

## Page for readers

reading-hint = 您可以阅读此文件，无需签署。
reading-signers = 签署人
reading-pending = { $name }，{ $role }：未打开
reading-viewed = { $name }，{ $role }：已打开
reading-signed = { $name }，{ $role }：已签署
reading-declined = { $name }，{ $role }：已拒绝
reading-closed-title = 没有可阅读的内容
reading-closed = 此文件未开放。
signed-first-page = 已签署文件的第一页

## Vault widget

vault-safe-title = 安全存于保险库
vault-safe = { $keeper } 在此保管原件，自签署以来未经更改。原件仅此一份：每份副本均注明其为副本。
vault-handed-over-title = 已移交
vault-handed-over = 原件现由另一保管人保管。此页面保留其历史记录。
vault-not-yet-title = 尚未存入保险库
vault-not-yet = 所有人签署后，原件将存入保险库。
vault-since = 入库时间
vault-over-since = 移交时间
vault-responsible = 负责方
vault-kept-for = 为以下方保管
vault-who-signed = 签署情况
vault-signed-at = 签署于 { $moment }
vault-unsigned = 未签署
vault-what-happened = 经过
vault-experts = 供专业人士参考的详情
vault-record-number = 记录编号
vault-hash = 原件的 SHA-256
vault-checks = UCC §9-105 的 { $total } 项检查中，已符合 { $passed } 项
inspect-hint = { $sender } 允许您在 { $moment } 之前查看此记录。每次查看都会被记录。
inspect-open = 打开记录
inspect-control = 控制权
inspect-controller = 控制方
inspect-since = 起始时间
inspect-originator = 创建方
inspect-pledgee = 质押给
inspect-download = 下载带水印的副本
inspect-over-title = 查看权限已结束
inspect-over = 请向发送链接的机构索取新链接。
copy-line = 副本持有人：{ $holder }，{ $party } · { $moment } · { $purpose } · { $id }
copy-sold = 已出售：{ $moment }
paper-line = { $id } 的纸质原件 · { $moment } 为 { $recipient } 转换 · 取代 SHA-256 为 { $hash } 的电子副本
join-title = { $sender } 邀请 { $name }
join-hint = { $sender } 希望在此将合同转让给 { $name }。加入后即可取得控制权：{ $name } 将获得一个机构帐户和一个 API 密钥。
join-button = 加入
join-done-title = { $name } 已加入
join-done = { $sender } 已收到此编号，现在可以指定您。
join-organization = 贵机构的编号
join-key = API 密钥
join-keep = 请妥善保管密钥：它不会再次显示。
join-over-title = 此邀请已结束
join-over = 邀请已被使用，或七天期限已过。请索取新的邀请。
statement-title = 控制权声明
statement-controlled = 由 { $controller } 控制
statement-still = 目前仍然如此。
statement-over = 此后控制权已转移，或原件已离开保管库。
statement-issued = 截至
statement-requested-by = 应以下人士要求出具
statement-jurisdiction = 司法管辖区
statement-pdf = 下载 PDF
statement-json = 下载数据 (JSON)
statement-chain = 曾拥有控制权的各方
statement-key = 签名密钥指纹
statement-check = 在此核验本声明
statement-proof = 证明
statement-act-stored = 合同已入库
statement-act-accepted = 取得控制权
statement-act-transfer = 通过转让取得控制权
statement-note = 此处所列条目属于公开日志，其头部已签名。数据文件包含这些条目及其证明；程序 holdfast-verify 无需本服务即可核验。本声明针对上述时刻。
history-created = 文件已准备
history-sent = 文件已发送给签署人
history-viewed = { $name } 打开了文件
history-signed = { $name } 已签署
history-signer = 一位签署人
history-completed = 所有人均已签署
history-declined = 一位签署人已拒绝
history-voided = 发件人已撤回文件
history-expired = 签署期限已过
history-stored = 原件已存入保险库
history-released = 原件已移交给 { $recipient }
history-paper = 为 { $recipient } 打印的纸质原件取代了电子原件
history-control = { $party } 取得控制权
history-recipient = 另一保管人
history-tampered = 发现所存原件已被更改
history-changed = { $name } 代替 { $previous } 签署

## Mails about approving, witnessing, reading and codes

mail-approval-subject = { $sender } 请您批准：{ $document }
mail-approval = { $sender } 请您批准“{ $document }”。
mail-witness-subject = { $sender } 请您以见证人身份签署：{ $document }
mail-witness = { $sender } 请您以见证人身份签署“{ $document }”。
mail-viewing-subject = { $sender } 请您查看：{ $document }
mail-viewing = { $sender } 已将“{ $document }”发送给签署人，并允许您阅读。
mail-viewing-copy = 您无需采取任何行动。所有各方签署后，您将收到副本。
mail-read = 阅读文件
mail-code-subject = 您的验证码：{ $code }
mail-code = 您用于 { $sender } 的“{ $document }”的验证码是 { $code }。
mail-code-use = 请在要求输入验证码的页面上输入。验证码仅可使用一次，{ $minutes } 分钟内有效。
mail-code-note = 不会有人通过电话向您索要此验证码。如果您没有索取验证码，请忽略此邮件。
text-invitation = { $sender } 请您签署“{ $document }”：
text-reminder = 提醒：{ $sender } 正在等待您签署“{ $document }”：
text-code = { $code } 是您用于 { $sender } 的“{ $document }”的验证码，十分钟内有效。不会有人通过电话向您索要此验证码。
custody-title = 保管记录
custody-file-title = { $id } 的保管记录
custody-file-subject = “{ $name }”的权威副本由谁保管、自何时起以及如何核实
custody-unnamed = 未命名的文件
custody-issued = 由 { $issuer } 出具，时间：{ $moment }
custody-recorded = 记录时间：{ $moment }
custody-certificate = 本记录所述控制检查的证书
custody-not-given = 未提供
custody-envelope = 信封
custody-customer = 客户
custody-custodian = 保管人
custody-secured-party = 担保权人
custody-documents = 文件
custody-algorithm = 哈希算法
custody-copy = 非权威副本
custody-parties = 当事方
custody-party = 当事方
custody-email = 电子邮件
custody-role = 角色
custody-unsigned = 未签署
custody-checks = 控制检查
custody-requirement = 要求
custody-reference = 依据
custody-finding = 结果
custody-timeline = 保管经过
custody-time = 时间
custody-actor = 操作者
custody-event = 事项
custody-made = 本记录的形成方式
custody-rules = 规则组件
custody-attachment = 附件
custody-note = 所附证书是本记录的机器可读形式。持有权威副本的人可以重复每项检查：对文件的字节计算上述哈希值，与本记录比较，并用此处列出的组件处理所保存的事实。
custody-key = API 密钥 { $id }
custody-payer = { $email }（付款人）
custody-second = 第二次评估
custody-second-score = 得分 { $score }，由 { $component }（{ $sha256 }）得出
custody-rewritten = 已重写
custody-seal = 封印
custody-seal-certificate = 证书 { $sha256 }（SHA-256）
custody-unsealed = 未封印：文件已被认证，不得作任何更改
custody-trusted-time = 可信时间
custody-stamped = { $moment }，由 { $authority } 确认
custody-stamped-unchecked = { $moment }，由 { $authority } 确认（该机构未经核实）
custody-no-time = 没有可信时间：{ $reason }
custody-log = 全部记录的日志
custody-log-head = { $origin }：此前 { $size } 条，根 { $root }
custody-existing-signature = 已有签名 { $field }
custody-signature-valid = 签名有效
custody-signature-valid-stamp = 时间戳有效
custody-signature-altered = 文件在签名后被更改
custody-signature-not-verifiable = 无法验证
custody-signature-signer = 签名者：{ $signer }
custody-signature-stamped = 时间戳：{ $moment }
custody-signature-clock = 签名者时钟：{ $moment }
custody-signature-level = 级别 { $level }
custody-signature-trusted = 证书可信
custody-signature-untrusted = 证书不可信
custody-signature-trust-not-checked = 证书未与根证书核对
custody-signature-changed-content = 后来的修订更改了内容
custody-signature-changed-annotations = 后来的修订更改了批注
custody-signature-changed-fields = 后来的修订更改了表单字段
custody-signature-part = 只覆盖其修订的一部分
custody-picture = 上传的文件是图片（{ $type }）；由此生成的 PDF 的 SHA-256：{ $sha256 }
custody-repaired = 文件结构需要修复；修复后文件的 SHA-256：{ $sha256 }
custody-sandbox = 测试环境
custody-sandbox-note = 某项付款或身份核验为模拟，不具证明力
custody-identity = 身份
custody-identity-note = 有签署人使用的浏览器与通过身份核验的浏览器不同
custody-final = 最终记录
custody-final-note = 原件曾存入保险库，后移交给另一保管人
custody-final-paper = 原件曾存入保险库，后被纸质原件取代
custody-handed-over-to = 移交给
custody-purpose = 用途
custody-authorized-by = 授权人
custody-requested-by = 请求人
mark-secured-party = 担保权人：
builder-done = 完成
builder-undo = 撤销
builder-preview = 预览
builder-save = 保存
builder-new-fields = 新字段
builder-add = 添加字段
builder-add-hint = 将字段拖到页面上，或按一下，将其添加到当前页面。
builder-signature = 签名
builder-initials = 姓名缩写
builder-text = 文本
builder-date = 日期
builder-number = 数字
builder-checkbox = 复选框
builder-select = 列表
builder-radio = 单选
builder-attachment = 文件
builder-signed-by = 签署角色
builder-add-role = 添加角色
builder-role-name = 角色名称
builder-role-example = 例如：卖方
builder-add-role-button = 添加
builder-cancel = 取消
builder-document = 文件
builder-choose = 选择 PDF
builder-selected = 所选字段
builder-selected-hint = 在页面上选择字段。方向键移动，按住 Shift 改变大小，Delete 删除。
builder-edit = 编辑
builder-close = 关闭
builder-name = 名称
builder-role = 角色
builder-required = 必填
builder-fixed = 固定：签署人不能更改
builder-prefilled = 预填内容
builder-options = 选项，每行一个
builder-rules = 规则
builder-min = 至少（数字，或日期，如 2026-01-31、today、today+30）
builder-max = 至多
builder-max-length = 最多字符数
builder-pattern = 匹配全文的正则表达式
builder-message = 文本不匹配时的提示
builder-formula = 公式，例如 [价格] * [税率] / 100
builder-decimals = 结果的小数位数
builder-condition = 显示条件（Field、Field:value、!Field 或 !Field:value）
builder-required-if = 必填条件
builder-remove = 移除此字段
builder-preview-as = 角色：
builder-preview-frame = 签署人将看到的内容
builder-sample-signer = 示例签署人
builder-ended = 此会话已结束。请重新打开编辑器。
builder-no-answer = 没有响应。请重试。
builder-page-not-shown = 有一页无法显示。
builder-box = { $kind } { $name }，{ $role }，第 { $page } 页
builder-no-room = 此页已没有空位。
builder-option = 选项 { $number }
builder-role-exists = 此角色已存在。
builder-role-missing = 请输入名称。
builder-uploading = 正在上传…
builder-imported = 从文件自带表单取得的字段：{ $count }
builder-problem-needed = 缺少内容，或数值太小。
builder-problem-too-large = 数值太大，或文字太长。
builder-problem-kind = 值的类型不正确。
builder-problem-page = 文件没有这一页。
builder-problem-outside = 字段超出了页面。
builder-problem-type = 同名字段的类型不同。
builder-problem-rule = 这种字段不能有此规则。
builder-problem-pattern = 此正则表达式无法使用。
builder-problem-condition = 此条件无法读取。
builder-problem-formula = 此公式无法读取。
builder-problem-unknown-field = 规则引用了不存在的字段。
builder-problem-circular = 规则依赖于自己的结果。
builder-problem-fields = 未保存：有些字段有问题。
builder-problem-changed = 未保存：模板已在别处更改。请重新打开编辑器。
builder-problem-file = 无法使用此文件。请选择没有密码的 PDF。
