# Texts for signers and recipients of mails. English is the reference: every other language has
# exactly these messages with these variables (docs/languages.md).

## Common

list-separator = {", "}
moment = { $date }, { $time } ({ $zone })
amount = { $currency } { $number }
yes = Yes
no = No
reference = Reference: { $id }

## Errors as pages

error-missing-title = This page does not exist
error-missing = Open the link in your e-mail again, or ask the sender for a new one.
error-refused-title = This link does not work
error-refused = It may have expired, or it is not complete. Ask the sender for a new one.
error-changed-title = This is not possible right now
error-changed = The document has changed in the meantime. Open the link in your e-mail again.
error-incomplete-title = Something is missing
error-incomplete = Go back and try again, or open the link in your e-mail again.
error-busy-title = One moment, please
error-busy = This link was used very often in a short time. Wait a minute and try again.
error-large-title = Too large
error-large = The picture is too large. Go back and try a smaller one.
error-slow-title = The connection was too slow
error-slow = Your entries did not arrive in time. Go back and try again.
error-unavailable-title = Not available right now
error-unavailable = Your link is valid and your saved entries are kept. Try again in a few minutes.
error-failed-title = Something went wrong
error-failed = Your saved entries are kept. Try again in a few minutes, or ask the sender.

## Signing form

signing-for = For { $name }, { $role }
signing-reading-view = Reading view
signing-document = Document
signing-page = Page { $number } of { $count }
signing-page-text = Text of page { $number }
signing-your-fields = Your fields
signing-title = Fill in and sign
signing-progress = { $done } of { $total } required fields done
signing-problems = Some fields need attention:
signing-consent-field = Your consent
signing-reason-field = Your reason
signing-document-field = The document
signing-required = (required)
signing-fixed = (fixed)
signing-choose = Choose…
signing-type-name = Type your name
signing-type-initials = Type your initials
signing-your-signature = Your signature
signing-sign-again = Sign again
signing-not-filled-in = Not filled in
signing-style = Style, when typed
signing-style-casual = casual style
signing-style-formal = formal style
signing-style-light = light style
signing-check = Check your answers
signing-finish = Finish and sign
signing-check-first = Check first
signing-save = Save for later
signing-back = Back
signing-next = Next
signing-start = Start
signing-continue = Continue
signing-skip = Skip
signing-check-and-sign = Check and sign
signing-not-answered = Not answered: counts as No
signing-how-to-give = How to give: { $field }
signing-type = Type
signing-draw = Draw
signing-upload = Upload
signing-use-mine = Use my signature
signing-sign-as = Sign as { $name }
signing-initial-as = Initial as { $name }
signing-draw-hint = Draw with your finger, pen or mouse
signing-clear = Clear
signing-drawing-area = Drawing area: { $field }
signing-choose-picture = Choose a PNG or JPEG of your signature
signing-picture = Picture: { $field }
signing-picture-unreadable = This file cannot be read as a picture.
signing-saving = Saving…
signing-saved = Saved
signing-preview = This is a preview: nothing is saved or signed.
signing-offline = No connection. Your entries are kept here and saved as soon as it is back.
signing-offline-finish = No connection. Your entries are kept here; sign when it is back.
signing-no-text = This page has no text.
signing-text-failed = The text could not be loaded.
mark-sign = Sign
mark-initial = Initial
mark-date = Date
mark-fill-in = Fill in
mark-attach = Attach
attachment-add = Attach
attachment-remove = Remove
attachment-hint = A PDF, PNG or JPEG file of at most { $limit } MB. It becomes part of the document.
attachment-files = Attached files
attachment-failed = The file could not be sent. Try again.

## Consent. A change needs a new version (CONSENT_VERSION in texts.rs).

consent-statement = I agree to sign this document electronically. My signature here has the same effect as one on paper.
consent-about = About electronic signatures
consent-disclosure = You may decline and ask the sender for paper instead. You get a copy of the signed document by e-mail, which you can read with any PDF reader and print. The time, your internet address and your browser's name are kept with your signature.

## Declining

decline-summary = I do not want to sign
decline-reason = Reason
decline-open = Decline…
decline-warning = Declining closes this document for all parties, and cannot be undone. The sender is told your reason.
decline-confirm = Decline for all parties

## Problems of entries

problem-required = This field is required
problem-unsigned = Sign here, or in another signature field of yours
problem-consent = Your consent to signing electronically is needed
problem-document-changed = Another signer has signed since you opened it. Look at the pages again
problem-reason = Say why you decline
problem-too-long = At most { $limit } characters
problem-number = Enter a number
problem-date = Enter a date as year-month-day
problem-option = Choose one of the options
problem-too-small = At least { $limit }
problem-too-big = At most { $limit }
problem-too-early = Not before { $limit }
problem-too-late = Not after { $limit }
problem-result-changed = The result has changed. Check it
problem-pattern = This entry does not have the expected form
problem-attachment-size = Attach a file of at most { $limit } MB
problem-attachments-size = All files together can have at most { $limit } MB
problem-attachment-type = Attach a PDF, PNG or JPEG file
problem-attachment-pages = Attach a PDF with at most { $limit } pages
problem-attachment-unreadable = This file cannot be read. It may be damaged or need a password
problem-picture-format = Use a PNG or JPEG picture
problem-picture-size = Use a picture of at most { $limit } KB
problem-picture-unreadable = This picture cannot be read

## Pages of a signing link

link-unknown-title = This link does not work
link-unknown = Check that it is complete, or ask the sender for a new one.
link-expired-title = This link has expired
link-expired = Links work for a limited time, to protect your document.
link-renew = E-mail me a new link
link-mailed-title = An e-mail is on its way
link-mailed = Check your inbox: the link was sent to the address of your invitation.
link-too-soon-title = Check your inbox
link-too-soon = We sent you an e-mail a few minutes ago. Check your inbox, or try again later.
replaced-title = Signer replaced
replaced = Another person has been asked to sign in your place.
incomplete-title = Something is missing
incomplete = Go back and try again.
withdrawn-title = Withdrawn
withdrawn = The sender has withdrawn this document.
expired-title = Expired
expired = The time limit for signing this document has passed.
declined-by-other-title = Declined
declined-by-other = Another signer has declined this document.
nothing-to-sign-title = Nothing to sign
nothing-to-sign = This document is not open for signing.
closed-title = This document is closed
closed = It can no longer be signed.
unavailable-title = Not available right now
unavailable-document = The document cannot be shown right now. Your link is valid: try again in a few minutes.
unavailable-identity = Your identity cannot be checked right now. Your link is valid: try again in a few minutes.
unavailable-payment = The payment cannot be made right now. Your link is valid: try again in a few minutes.
not-yet-title = It's not your turn yet
not-yet = { $name } signs before you. You will get an e-mail when it is your turn.
not-yet-other = Another person signs before you. You will get an e-mail when it is your turn.
signed-thanks = Thank you
signed-title = You have signed
signed-document = You have signed “{ $document }”.
signed-still-to-sign = Still to sign:
signed-copy-later = You will get your copy by e-mail when all parties have signed.
signed-copy-expired = All parties have signed. This link has expired, so we will send your copy by e-mail.
signed-mail-copy = E-mail me my copy
signed-copy-ready = All parties have signed. Download your copy; we also send it by e-mail.
signed-download = Download your copy
signed-certificate = Download the certificate of completion
certificate-name = Certificate of completion
continue-to = Continue to { $host }
close-page = You can close this page.
you-declined-title = You have declined
you-declined = We have notified the sender.

## Payment

payment-title = Payment
payment-for = For “{ $document }”
payment-due = Amount due:
payment-pay = Pay { $amount }
payment-other-way = The sender collects this payment in another way.
payment-needs-script = Paying needs JavaScript in your browser.
payment-back = Back to the document
payment-received-title = Payment received
payment-paid = Paid:
payment-sandbox = This is a sandbox for development: no money moves.
payment-load-failed = The payment form could not be loaded.
payment-failed = The payment did not go through.

## Identity check

identity-title = Confirm who you are
identity-before = Before “{ $document }” opens, the sender wants to be sure that it is you.
identity-code-title = Enter your code
identity-questions-title = Answer these questions
identity-wrong-title = Your answers were not correct
identity-wait-title = Come back later
identity-exhausted-title = No more attempts
identity-busy-title = One moment
identity-unavailable-title = Your identity could not be checked
identity-time-over = The time limit has passed. You can start again.
identity-wrong-code = That code is not correct. We sent you a new one.
identity-not-accepted = Your entries were not accepted. Check them and try again.
identity-too-many = Too many codes were requested. Wait a while before you try again.
identity-try-later = The identity service did not answer. Try again in a moment.
identity-first-name = First name
identity-last-name = Last name
identity-phone = Mobile phone
identity-birth = Date of birth
identity-ssn = Last four digits of your SSN
identity-line1 = Street address
identity-line2 = Apartment or unit
identity-city = City
identity-state = State
identity-zip = ZIP code
identity-consent = I agree that this information is sent to an identity-verification service, which looks up records about me to build questions that I can answer.
identity-kept = It is used for this check alone and is not kept here: only the result, its time and your internet address are.
identity-continue = Continue
identity-minutes = { $minutes ->
    [one] You have { $minutes } minute for this.
   *[other] You have { $minutes } minutes for this.
}
identity-code-sent = A code was sent to your phone.
identity-code = Code
identity-send = Send answers
identity-checking = We are checking your answers.
identity-look-again = Look again
identity-unavailable = There are not enough records about you to ask questions. This is not your fault and has no consequences.
identity-enter-again = If you made a mistake in your entries, enter them again.
identity-other-way = The sender can arrange another way to sign.
identity-also-other-way = The sender can also arrange another way to sign.
identity-try-again = Try again
identity-wrong = { $left ->
    [1] At least one answer was wrong. You can try once more, with other questions.
    [2] At least one answer was wrong. You can try twice more, with other questions.
   *[other] At least one answer was wrong. You can try { $left } times more, with other questions.
}
identity-exhausted = You have used all attempts.
identity-wait-minutes = { $minutes ->
    [1] You can try again in a minute.
   *[other] You can try again in { $minutes } minutes.
}
identity-wait-hours = { $hours ->
    [one] You can try again in { $hours } hour.
   *[other] You can try again in { $hours } hours.
}
identity-needed = This is needed
identity-consent-needed = Your consent is needed to go on
identity-enter-code = Enter the code
identity-choose = Choose an answer
identity-phone-digits = Enter a phone number with digits only
identity-phone-area = Enter your number with its area code
identity-enter-date = Enter a date
identity-enter-birth = Enter your date of birth
identity-four-digits = Enter four digits
identity-five-digits = Enter five digits
identity-two-letters = Enter the two letters of the state
identity-hundred = Enter at most 100 characters

## Public verification page

verify-unknown-title = There is no such record
verify-unknown = Check the address, or scan the code on the certificate again.
verify-record = Record { $id }
verify-vaulted = Signed by all parties. The authoritative copy is in the vault.
verify-released = Signed by all parties. The authoritative copy was released to another custodian.
verify-paper = Signed by all parties. A paper original has replaced the authoritative copy.
verify-signed = { $name }, signed { $moment }
verify-title = Is your copy the one?
verify-choose = Choose your file. It is compared on this device and not sent anywhere.
verify-file = PDF file
verify-fingerprints = Fingerprints (SHA-256)
verify-copy = the copy for the parties
verify-authoritative = the authoritative copy
verify-comparing = Comparing…
verify-unsupported = This browser cannot compare files. Compare the fingerprints below with a program such as sha256sum.
verify-same = Yes: your file is { $name }, unchanged.
verify-other = No: your file is another one, or it was changed. A file that was printed and scanned, or saved again by a program, counts as changed.

## Certificate of completion

certificate-sent-by = Sent by
certificate-sent = Sent
certificate-completed = Completed
certificate-vaulted = In the vault since
certificate-reference = Reference
certificate-signed-document = Signed document
certificate-authoritative = Authoritative copy
certificate-copy = Copy for the parties
certificate-opened = First opened
certificate-identity = Identity check
certificate-identity-passed = identity questions answered, { $moment } (provider { $provider })
certificate-consent = Electronic consent
certificate-signed = Signed
certificate-file = Attached file
certificate-address = Internet address
certificate-browser = Browser
certificate-caption = Scan the code or open the address to check this record, and whether your copy is the document that was signed.

## Widgets in other pages

embed-title = One moment
embed-opening = Opening your document…
embed-needs-script = This page needs JavaScript. Open the link from your e-mail instead.
embed-expired-title = This page has expired
embed-expired = Go back to the previous page and open it again.
vault-download = Download a copy
vault-satisfied = Satisfied.
vault-not-satisfied = Not satisfied.

## Mails

mail-hello = Hello { $name },
mail-hello-nobody = Hello,
mail-button = { $label }:
mail-read-and-sign = Read and sign the document
mail-link-note = The link is meant for you alone and works for seven days. Please do not forward this e-mail.
mail-deadline = Please sign by { $moment }.
mail-others = Other signers: { $signers }.
mail-other = { $name } ({ $role })
mail-other-signed = { $name } ({ $role }, has signed)
mail-invitation-subject = { $sender } asks you to sign: { $document }
mail-invitation = { $sender } asks you to sign “{ $document }”.
mail-reminder-subject = Reminder: { $sender } is waiting for your signature: { $document }
mail-reminder = { $sender } is waiting for your signature on “{ $document }”.
mail-reminder-link = You can sign it with this new link. Older links may have expired.
mail-completed-subject = Completed: { $document }
mail-completed = “{ $document }” is completed: all parties have signed.
mail-attached-certificate = The signed document is attached, marked as a non-authoritative copy, and a certificate of who signed when.
mail-attached = The signed document is attached, marked as a non-authoritative copy.
mail-linked = The signed document is too large for an e-mail. You can download your copy for seven days.
mail-too-large = The signed document is too large for an e-mail.
mail-declined-subject = Declined: { $document }
mail-declined-by = { $name } has declined to sign “{ $document }”.
mail-declined-reason = The reason given: { $reason }
mail-declined-self = You have declined to sign “{ $document }”. { $sender } has been notified.
mail-declined-contact = If you did not decline, please contact { $sender }.
mail-declined-other = Another signer has declined to sign “{ $document }”.
mail-declined-closed = The document is closed. You do not need to do anything.
mail-withdrawn-subject = Withdrawn: { $document }
mail-withdrawn = { $sender } has withdrawn “{ $document }”.
mail-withdrawn-closed = Your links no longer open it. You do not need to do anything.
mail-endpoint-receiver = your receiver
mail-endpoint-failing-subject = Webhooks do not arrive at { $host }
mail-endpoint-failing-since = Every attempt to deliver an event to { $host } has failed since { $since }.
mail-endpoint-failing-days = Every attempt to deliver an event to { $host } has failed for days.
mail-endpoint-failing = After five days of failures the endpoint is disabled and its waiting deliveries are dropped.
mail-endpoint-disabled-subject = Webhooks to { $host } are disabled
mail-endpoint-gone = The webhook endpoint at { $host } was disabled. It answered 410 (gone).
mail-endpoint-failed = The webhook endpoint at { $host } was disabled. Every attempt failed for five days.
mail-endpoint-disabled = Events are not kept for it from now on. Enable it again once its receiver is back; what was missed can be delivered again from its log.
mail-release-subject = { $originator } asks to release { $document }
mail-release = { $originator } wants to release the authoritative copy of { $document } to { $recipient }. Purpose: { $purpose }
mail-release-paper = { $originator } wants to replace the authoritative copy of { $document } by a paper original for { $recipient }. Purpose: { $purpose }
mail-release-answer = Your organization controls this record. Without your consent the copy stays in the vault. Answer with the reference below.
mail-view = { $sender } lets you look at the signed contract { $document }. The link works until { $moment }.
mail-view-note = Every look at the contract is recorded. The link is meant for you alone; please do not forward it.

## Kinds of signers

signing-for-approver = For { $name }, { $role } (approves)
signing-for-witness = For { $name }, { $role } (signs as a witness)
signing-approve = Approve
signing-download = Download to read
consent-approval = I approve this document electronically. My approval here has the same effect as one on paper.
signer-approver = { $role } (approver)
signer-witness = { $role } (witness)

## Another person signs

delegate-summary = Another person should sign in my place
delegate-explained = Your own link no longer works afterwards, and the sender is told whom you named.
delegate-name = Name of the person
delegate-email = E-mail address of the person
delegate-phone = Mobile phone of the person, with country code
delegate-confirm = Ask this person
delegate-name-missing = Enter the name of the person
delegate-email-missing = Enter an e-mail address
delegate-phone-missing = Enter a mobile number with its country code
delegate-own-address = This is your own address
delegated-title = Passed on
delegated = { $name } was asked to sign in your place. You do not need to do anything else.

## A code before the document

code-title = Enter your code
code-locked = Too many wrong codes were entered.
code-locked-until = { $minutes ->
    [1] You can try again in a minute. If you did not enter the codes, tell the sender.
   *[other] You can try again in { $minutes } minutes. If you did not enter the codes, tell the sender.
}
code-will-send = We will send a code to { $address }.
code-sent = We have sent a code to { $address }. It works for ten minutes.
code-will-send-phone = We will send a text message with a code to your phone. Its number ends in { $digits }.
code-sent-phone = We have sent a text message with a code to your phone. Its number ends in { $digits }. The code works for ten minutes.
code-passcode = Enter the passcode that the sender has given you.
code-label = Code
code-passcode-label = Passcode
code-open = Open the document
code-send = Send me a code
code-send-another = Send another code
code-wrong = This is not the code. Check it and try again.
code-outdated = This code is too old. Ask for a new one.
code-later = { $minutes ->
    [1] You can ask for another code in a minute.
   *[other] You can ask for another code in { $minutes } minutes.
}
certificate-code = Code before the document
certificate-code-mailed = mailed code, { $moment }
certificate-code-texted = code by text message to the number ending in { $digits }, { $moment }
certificate-code-passcode = passcode of the sender, { $moment }

## Page for readers

reading-hint = You can read this document. You do not need to sign it.
reading-signers = Signers
reading-pending = { $name }, { $role }: has not opened it
reading-viewed = { $name }, { $role }: has opened it
reading-signed = { $name }, { $role }: has signed
reading-declined = { $name }, { $role }: has declined
reading-closed-title = Nothing to read
reading-closed = This document is not open.
signed-first-page = First page of the signed document

## Vault widget

vault-safe-title = Safe in the vault
vault-safe = { $keeper } keeps the original here, unchanged since it was signed. There is only one: every copy says that it is a copy.
vault-handed-over-title = Handed over
vault-handed-over = The original is with another custodian now. This page keeps its history.
vault-not-yet-title = Not in the vault yet
vault-not-yet = The original comes into the vault after everybody has signed.
vault-since = In the vault since
vault-over-since = Handed over
vault-responsible = Responsible
vault-kept-for = Kept for
vault-who-signed = Who signed
vault-signed-at = Signed { $moment }
vault-unsigned = Has not signed
vault-what-happened = What happened
vault-experts = Details for experts
vault-record-number = Record number
vault-hash = SHA-256 of the original
vault-checks = { $passed } of { $total } checks of UCC §9-105 are satisfied
inspect-hint = { $sender } lets you look at this record until { $moment }. Every look is recorded.
inspect-open = Open the record
inspect-control = Control
inspect-controller = Controlled by
inspect-since = Since
inspect-originator = Created by
inspect-pledgee = Pledged to
inspect-download = Download a watermarked copy
inspect-over-title = This view is over
inspect-over = Ask the organization that sent you the link for another one.
copy-line = Copy for { $holder }, { $party } · { $moment } · { $purpose } · { $id }
copy-sold = Sold { $moment }
paper-line = Paper original of { $id } · converted { $moment } for { $recipient } · replaces the electronic copy with SHA-256 { $hash }
join-title = { $sender } invites { $name }
join-hint = { $sender } wants to assign contracts to { $name } here. Join to take control of them: { $name } gets an organization and a key for the API.
join-button = Join
join-done-title = { $name } has joined
join-done = { $sender } has got this id and can designate you now.
join-organization = Id of your organization
join-key = API key
join-keep = Keep the key in a safe place: it is not shown again.
join-over-title = This invitation is over
join-over = It was used, or its seven days have passed. Ask for another one.
statement-title = Statement of control
statement-controlled = Controlled by { $controller }
statement-still = This still holds now.
statement-over = Since then control has passed on, or the original has left the vault.
statement-issued = As of
statement-requested-by = Issued at the request of
statement-jurisdiction = Jurisdiction
statement-pdf = Download as a PDF
statement-json = Download as data (JSON)
statement-chain = Who had control
statement-key = Thumbprint of the signing key
statement-check = Check this statement at
statement-proof = Proof
statement-act-stored = the contract was stored
statement-act-accepted = took control
statement-act-transfer = took control in a transfer
statement-note = The entries named here are part of a public log whose head is signed. The data file has them with their proofs; the program holdfast-verify checks it without this service. The statement is about the moment named above.
history-created = The document was prepared
history-sent = It was sent to the signers
history-viewed = { $name } opened it
history-signed = { $name } signed
history-signer = A signer
history-completed = Everybody has signed
history-declined = A signer declined
history-voided = The sender withdrew it
history-expired = The time for signing ended
history-stored = The original was put into the vault
history-released = The original was handed over to { $recipient }
history-paper = A paper original for { $recipient } replaced the electronic original
history-control = { $party } took control
history-recipient = another custodian
history-tampered = The stored original was found changed
history-changed = { $name } signs in the place of { $previous }

## Mails about approving, witnessing, reading and codes

mail-approval-subject = { $sender } asks you to approve: { $document }
mail-approval = { $sender } asks you to approve “{ $document }”.
mail-witness-subject = { $sender } asks you to sign as a witness: { $document }
mail-witness = { $sender } asks you to sign “{ $document }” as a witness.
mail-viewing-subject = { $sender } shows you: { $document }
mail-viewing = { $sender } has sent “{ $document }” to its signers and lets you read it.
mail-viewing-copy = You do not need to do anything. You will get a copy when all parties have signed.
mail-read = Read the document
mail-code-subject = Your code: { $code }
mail-code = Your code for “{ $document }” of { $sender } is { $code }.
mail-code-use = Enter it on the page that asked for it. It works once, for { $minutes } minutes.
mail-code-note = Nobody will ask you for this code by telephone. If you did not ask for it, ignore this e-mail.
text-invitation = { $sender } asks you to sign “{ $document }”:
text-reminder = Reminder: { $sender } is waiting for your signature on “{ $document }”:
text-code = { $code } is your code for “{ $document }” of { $sender }. It works for ten minutes. Nobody will ask you for it by telephone.

## Custody record and marks

custody-title = Custody record
custody-file-title = Custody record of { $id }
custody-file-subject = Who held the authoritative copy of “{ $name }”, since when, and how that was checked
custody-unnamed = Unnamed envelope
custody-issued = Issued by { $issuer } on { $moment }
custody-recorded = Recorded { $moment }
custody-certificate = Certificate of the control checks that this record reports
custody-not-given = not given
custody-envelope = Envelope
custody-customer = Customer
custody-custodian = Custodian
custody-secured-party = Secured party
custody-documents = Documents
custody-algorithm = Hash algorithm
custody-copy = Non-authoritative copy
custody-parties = Parties
custody-party = Party
custody-email = E-mail
custody-role = Role
custody-unsigned = not signed
custody-checks = Control checks
custody-requirement = Requirement
custody-reference = Reference
custody-finding = Finding
custody-timeline = Chain of custody
custody-time = Time
custody-actor = Actor
custody-event = Event
custody-made = How this record was made
custody-rules = Rules component
custody-attachment = Attachment
custody-note = The attached certificate is the machine-readable form of this record. Whoever holds the authoritative copy can repeat every check: compute the hash named above over the bytes of the document, compare it with this record, and run the component named here over the stored facts.
custody-key = API key { $id }
custody-payer = { $email } (payer)
custody-second = Second evaluation
custody-second-score = score { $score }, by { $component } ({ $sha256 })
custody-rewritten = Rewritten
custody-seal = Seal
custody-seal-certificate = certificate { $sha256 } (SHA-256)
custody-unsealed = not sealed: the document is certified against any change
custody-trusted-time = Trusted time
custody-stamped = { $moment }, by { $authority }
custody-stamped-unchecked = { $moment }, by { $authority } (an authority that is not checked)
custody-no-time = no trusted time: { $reason }
custody-log = Log of all ledgers
custody-log-head = { $origin }: { $size } entries before, root { $root }
custody-existing-signature = Existing signature { $field }
custody-signature-valid = valid signature
custody-signature-valid-stamp = valid time stamp
custody-signature-altered = the document was altered after signing
custody-signature-not-verifiable = could not be verified
custody-signature-signer = by { $signer }
custody-signature-stamped = time-stamped { $moment }
custody-signature-clock = by the signer’s clock on { $moment }
custody-signature-level = level { $level }
custody-signature-trusted = certificate trusted
custody-signature-untrusted = certificate not trusted
custody-signature-trust-not-checked = certificate not checked against roots
custody-signature-changed-content = a later revision changed the content
custody-signature-changed-annotations = a later revision changed annotations
custody-signature-changed-fields = a later revision changed form fields
custody-signature-part = covers only a part of its revision
custody-picture = the upload is a picture ({ $type }); SHA-256 of the PDF made from it: { $sha256 }
custody-repaired = the document’s structure had to be repaired; SHA-256 of the repaired document: { $sha256 }
custody-sandbox = Sandbox
custody-sandbox-note = a payment or an identity check was simulated and proves nothing
custody-identity = Identity
custody-identity-note = a signer came with another browser than the one that passed the identity check
custody-final = Final record
custody-final-note = the original was put into the vault and handed over to another custodian
custody-final-paper = the original was put into the vault and replaced by a paper original
custody-handed-over-to = Handed over to
custody-purpose = Purpose
custody-authorized-by = Authorized by
custody-requested-by = Requested by
mark-secured-party = Secured party:

## Field builder

builder-done = Done
builder-undo = Undo
builder-preview = Preview
builder-save = Save
builder-new-fields = New fields
builder-add = Add a field
builder-add-hint = Drag one onto a page, or press it to add it to the page you see.
builder-signature = Signature
builder-initials = Initials
builder-text = Text
builder-date = Date
builder-number = Number
builder-checkbox = Checkbox
builder-select = List
builder-radio = Radio
builder-attachment = File
builder-signed-by = Signed by
builder-add-role = Add a role
builder-role-name = Name of the role
builder-role-example = For example Seller
builder-add-role-button = Add
builder-cancel = Cancel
builder-document = Document
builder-choose = Choose a PDF
builder-selected = Selected field
builder-selected-hint = Select a field on a page. Arrow keys move it, with Shift they resize it; Delete removes it.
builder-edit = Edit
builder-close = Close
builder-name = Name
builder-role = Role
builder-required = Required
builder-fixed = Fixed: the signer cannot change it
builder-prefilled = Prefilled with
builder-options = Options, one on each line
builder-rules = Rules
builder-min = At least (a number, or a date as 2026-01-31, today, today+30)
builder-max = At most
builder-max-length = Maximum number of characters
builder-pattern = Regular expression for the whole text
builder-message = Message when the text does not match
builder-formula = Formula, such as [Price] * [Rate] / 100
builder-decimals = Decimal places of the result
builder-condition = Shown if (Field, Field:value, !Field or !Field:value)
builder-required-if = Required if
builder-remove = Remove this field
builder-preview-as = as
builder-preview-frame = What the signer will see
builder-sample-signer = Sample Signer
builder-ended = This session has ended. Open the builder again.
builder-no-answer = There was no answer. Try again.
builder-page-not-shown = A page could not be shown.
builder-box = { $kind } { $name }, for { $role }, page { $page }
builder-no-room = There is no room left on this page.
builder-option = Option { $number }
builder-role-exists = This role exists already.
builder-role-missing = Enter a name.
builder-uploading = Uploading…
builder-imported = Fields taken from the document’s own form: { $count }
builder-problem-needed = Something is missing, or a value is too small.
builder-problem-too-large = A value is too large, or a text is too long.
builder-problem-kind = A value has the wrong kind.
builder-problem-page = The document has no such page.
builder-problem-outside = The field lies outside its page.
builder-problem-type = A field of this name has another type.
builder-problem-rule = Fields of this type cannot have this rule.
builder-problem-pattern = This regular expression cannot be used.
builder-problem-condition = This condition cannot be read.
builder-problem-formula = This formula cannot be read.
builder-problem-unknown-field = A rule names a field that does not exist.
builder-problem-circular = A rule depends on its own result.
builder-problem-fields = Not saved: some fields have problems.
builder-problem-changed = Not saved: the template was changed elsewhere. Open the builder again.
builder-problem-file = This file cannot be used. Choose a PDF without a password.

## Console

sign-in-subject = Sign in to { $organization }
sign-in-mail = This link signs you in as { $email }. It works once, until { $until }.
sign-in-note = If you did not ask for it, ignore this mail: nobody gets in without the link.
sign-in-button = Sign in
sign-in-title = Sign in
sign-in-hint = You get a link by e-mail. There is no password.
sign-in-email = E-mail address
sign-in-send = Send me a link
sign-in-sent-title = Check your inbox
sign-in-sent = If somebody has access with this address, a link is on its way. It works once, for 15 minutes.
sign-in-as = You sign in as { $email } at { $organization }.
sign-in-over-title = This link is over
sign-in-over = It was used already, or its time is over.
console-navigation = Pages
console-home = Home
console-envelopes = Envelopes
console-users = Users
console-sessions = Your sessions
console-sign-out = Sign out
console-forbidden-title = Not for your role
console-forbidden = Your role does not permit this, or the form is too old. Go back and load the page again.
console-no-envelopes = Your role does not read envelopes.
console-waiting = Waiting for signatures
console-signed = Signed, not in the vault yet
console-declined = Declined
console-below = In the vault below 100
console-findings = Stored documents were changed
console-nothing = Nothing here.
console-all = Show all
console-older = Older envelopes
console-search = Search
console-search-hint = Name, person, id or external id
console-status = Status
console-all-statuses = All
console-score = Score { $score }
console-people = People
console-signed-at = Signed on
console-unsigned = Has not signed
console-checks = Checks of the law: { $score } of 100
console-stuck = This document is signed and not in the vault:
console-remind = Send a reminder
console-reminded = The signers get a new link.
console-void = Void
console-voided = The envelope is void.
console-reason = Reason
console-verify = Verify now
console-verified = The evidence is valid.
console-not-verified = The evidence is not valid:
console-sessions-hint = Browsers in which you are signed in.
console-this-session = this browser
console-signed-in = Signed in on
console-end-session = End
console-invite = Invite
console-invited = has not signed in yet
console-ended = no access any more
console-role = Role
console-change = Change
console-change-role = Change the role
console-invite-again = Send another link
console-end-access = End the access
status-pending = pending
status-uploaded = uploaded
status-preparing = in preparation
status-sent = sent
status-viewed = opened
status-completed = signed
status-vaulted = in the vault
status-vaulted-out = released
status-declined = declined
status-voided = void
status-expired = expired
role-owner = Owner
role-admin = Administrator
role-sender = Sender
role-compliance = Compliance
role-auditor = Auditor
role-controller = Controller
role-developer = Developer
role-member = Member
console-developers = Developers
console-audit = Who did what
console-receivers = Receivers of webhooks
console-keys = API keys
console-active = active
console-inactive = deactivated
console-failing = failing since
console-last-used = Last used on
console-deliveries = Deliveries
console-newer = Newer
console-earlier = Earlier
console-attempts = Attempts
console-no-answer = no answer
console-send-again = Send again
console-content = Content
delivery-pending = waiting
delivery-delivered = delivered
delivery-failed = failed
console-rules = Rules
console-in-force = In force
console-since = since
console-planned = planned for
console-requests = Change requests
console-policy = Approvals that a change needs: { $count }
console-roll-back = roll back
console-policy-change = policy of changes
console-approvals = { $given } of { $required } approvals
console-compared = { $differing } of { $compared } records differ
change-open = open
change-applied = applied
change-refused = refused
change-withdrawn = withdrawn
change-outdated = outdated
change-expired = expired
review-approve = approved
review-refuse = refused
review-comment = comment
console-export = Export as CSV
console-from = Created from
console-to = until
