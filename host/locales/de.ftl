# Deutsch, mit formeller Anrede.

## Common

list-separator = {", "}
moment = { $date }, { $time } Uhr ({ $zone })
amount = { $number } { $currency }
yes = Ja
no = Nein
reference = Referenz: { $id }

## Errors as pages

error-missing-title = Diese Seite gibt es nicht
error-missing = Öffnen Sie den Link in Ihrer E-Mail noch einmal, oder bitten Sie den Absender um einen neuen.
error-refused-title = Dieser Link funktioniert nicht
error-refused = Er ist möglicherweise abgelaufen oder unvollständig. Bitten Sie den Absender um einen neuen.
error-changed-title = Das ist im Moment nicht möglich
error-changed = Das Dokument hat sich inzwischen geändert. Öffnen Sie den Link in Ihrer E-Mail noch einmal.
error-incomplete-title = Es fehlt etwas
error-incomplete = Gehen Sie zurück und versuchen Sie es noch einmal, oder öffnen Sie den Link in Ihrer E-Mail erneut.
error-busy-title = Einen Moment, bitte
error-busy = Dieser Link wurde in kurzer Zeit sehr oft aufgerufen. Warten Sie eine Minute und versuchen Sie es noch einmal.
error-large-title = Zu groß
error-large = Das Bild ist zu groß. Gehen Sie zurück und versuchen Sie es mit einem kleineren.
error-slow-title = Die Verbindung war zu langsam
error-slow = Ihre Eingaben sind nicht rechtzeitig angekommen. Gehen Sie zurück und versuchen Sie es noch einmal.
error-unavailable-title = Im Moment nicht verfügbar
error-unavailable = Ihr Link ist gültig, und Ihre gespeicherten Eingaben bleiben erhalten. Versuchen Sie es in einigen Minuten noch einmal.
error-failed-title = Etwas ist schiefgegangen
error-failed = Ihre gespeicherten Eingaben bleiben erhalten. Versuchen Sie es in einigen Minuten noch einmal, oder wenden Sie sich an den Absender.

## Signing form

signing-for = Für { $name }, { $role }
signing-reading-view = Leseansicht
signing-document = Dokument
signing-page = Seite { $number } von { $count }
signing-page-text = Text von Seite { $number }
signing-your-fields = Ihre Felder
signing-title = Ausfüllen und unterschreiben
signing-progress = Pflichtfelder: { $done } von { $total }
signing-problems = Bitte prüfen Sie diese Felder:
signing-consent-field = Ihre Zustimmung
signing-reason-field = Ihr Grund
signing-document-field = Das Dokument
signing-required = (Pflichtfeld)
signing-fixed = (vorgegeben)
signing-choose = Bitte wählen…
signing-type-name = Geben Sie Ihren Namen ein
signing-type-initials = Geben Sie Ihre Initialen ein
signing-your-signature = Ihre Unterschrift
signing-sign-again = Neu unterschreiben
signing-not-filled-in = Nicht ausgefüllt
signing-style = Schriftart bei Eingabe mit der Tastatur
signing-style-casual = lockere Schrift
signing-style-formal = förmliche Schrift
signing-style-light = feine Schrift
signing-check = Prüfen Sie Ihre Angaben
signing-finish = Abschließen und unterschreiben
signing-check-first = Erst prüfen
signing-save = Für später speichern
signing-back = Zurück
signing-next = Weiter
signing-start = Beginnen
signing-continue = Fortfahren
signing-skip = Überspringen
signing-check-and-sign = Prüfen und unterschreiben
signing-not-answered = Nicht beantwortet: gilt als Nein
signing-how-to-give = Art der Eingabe: { $field }
signing-type = Tippen
signing-draw = Zeichnen
signing-upload = Hochladen
signing-use-mine = Meine Unterschrift verwenden
signing-sign-as = Unterschreiben als { $name }
signing-initial-as = Abzeichnen als { $name }
signing-draw-hint = Zeichnen Sie mit Finger, Stift oder Maus
signing-clear = Löschen
signing-drawing-area = Zeichenfläche: { $field }
signing-choose-picture = Wählen Sie Ihre Unterschrift als PNG oder JPEG
signing-picture = Bild: { $field }
signing-picture-unreadable = Diese Datei lässt sich nicht als Bild lesen.
signing-saving = Wird gespeichert…
signing-saved = Gespeichert
signing-preview = Dies ist eine Vorschau: Nichts wird gespeichert oder unterschrieben.
signing-offline = Keine Verbindung. Ihre Eingaben bleiben hier erhalten und werden gespeichert, sobald sie wieder besteht.
signing-offline-finish = Keine Verbindung. Ihre Eingaben bleiben hier erhalten; unterschreiben Sie, sobald sie wieder besteht.
signing-no-text = Diese Seite enthält keinen Text.
signing-text-failed = Der Text konnte nicht geladen werden.
mark-sign = Unterschreiben
mark-initial = Abzeichnen
mark-date = Datum
mark-fill-in = Ausfüllen
mark-attach = Anhängen
attachment-add = Anhängen
attachment-remove = Entfernen
attachment-hint = Eine PDF-, PNG- oder JPEG-Datei von höchstens { $limit } MB. Sie wird Teil des Dokuments.
attachment-files = Angehängte Dateien
attachment-failed = Die Datei konnte nicht gesendet werden. Versuchen Sie es noch einmal.

## Consent

consent-statement = Ich bin damit einverstanden, dieses Dokument elektronisch zu unterschreiben. Meine Unterschrift hier hat dieselbe Wirkung wie eine Unterschrift auf Papier.
consent-about = Über elektronische Unterschriften
consent-disclosure = Sie können ablehnen und den Absender stattdessen um Papier bitten. Sie erhalten per E-Mail eine Kopie des unterschriebenen Dokuments, die Sie mit jedem PDF-Programm lesen und ausdrucken können. Der Zeitpunkt, Ihre Internetadresse und der Name Ihres Browsers werden zusammen mit Ihrer Unterschrift aufbewahrt.

## Declining

decline-summary = Ich möchte nicht unterschreiben
decline-reason = Grund
decline-open = Ablehnen…
decline-warning = Wenn Sie ablehnen, wird dieses Dokument für alle Parteien geschlossen. Das kann nicht rückgängig gemacht werden. Der Absender erfährt Ihren Grund.
decline-confirm = Für alle Parteien ablehnen

## Problems of entries

problem-required = Dieses Feld muss ausgefüllt werden
problem-unsigned = Unterschreiben Sie hier oder in einem anderen Ihrer Unterschriftsfelder
problem-consent = Ihre Zustimmung zur elektronischen Unterschrift ist erforderlich
problem-document-changed = Ein anderer Unterzeichner hat unterschrieben, seit Sie das Dokument geöffnet haben. Sehen Sie die Seiten noch einmal an
problem-reason = Geben Sie an, warum Sie ablehnen
problem-too-long = Höchstens { $limit } Zeichen
problem-number = Geben Sie eine Zahl ein
problem-date = Geben Sie ein Datum als Jahr-Monat-Tag ein
problem-option = Wählen Sie eine der Möglichkeiten
problem-too-small = Mindestens { $limit }
problem-too-big = Höchstens { $limit }
problem-too-early = Nicht vor dem { $limit }
problem-too-late = Nicht nach dem { $limit }
problem-result-changed = Das Ergebnis hat sich geändert. Prüfen Sie es
problem-pattern = Diese Angabe hat nicht die erwartete Form
problem-attachment-size = Hängen Sie eine Datei von höchstens { $limit } MB an
problem-attachments-size = Alle Dateien zusammen dürfen höchstens { $limit } MB groß sein
problem-attachment-type = Hängen Sie eine PDF-, PNG- oder JPEG-Datei an
problem-attachment-pages = Hängen Sie ein PDF mit höchstens { $limit } Seiten an
problem-attachment-unreadable = Diese Datei ist nicht lesbar. Sie ist vielleicht beschädigt oder braucht ein Passwort
problem-picture-format = Verwenden Sie ein Bild im Format PNG oder JPEG
problem-picture-size = Verwenden Sie ein Bild von höchstens { $limit } KB
problem-picture-unreadable = Dieses Bild lässt sich nicht lesen

## Pages of a signing link

link-unknown-title = Dieser Link funktioniert nicht
link-unknown = Prüfen Sie, ob er vollständig ist, oder bitten Sie den Absender um einen neuen.
link-expired-title = Dieser Link ist abgelaufen
link-expired = Links gelten nur für begrenzte Zeit, um Ihr Dokument zu schützen.
link-renew = Neuen Link per E-Mail senden
link-mailed-title = Eine E-Mail ist unterwegs
link-mailed = Sehen Sie in Ihrem Posteingang nach: Der Link wurde an die Adresse Ihrer Einladung gesendet.
link-too-soon-title = Sehen Sie in Ihrem Posteingang nach
link-too-soon = Wir haben Ihnen vor wenigen Minuten eine E-Mail gesendet. Sehen Sie in Ihrem Posteingang nach, oder versuchen Sie es später noch einmal.
replaced-title = Unterzeichner ersetzt
replaced = Eine andere Person wurde gebeten, an Ihrer Stelle zu unterschreiben.
incomplete-title = Es fehlt etwas
incomplete = Gehen Sie zurück und versuchen Sie es noch einmal.
withdrawn-title = Zurückgezogen
withdrawn = Der Absender hat dieses Dokument zurückgezogen.
expired-title = Abgelaufen
expired = Die Frist zum Unterschreiben dieses Dokuments ist abgelaufen.
declined-by-other-title = Abgelehnt
declined-by-other = Ein anderer Unterzeichner hat dieses Dokument abgelehnt.
nothing-to-sign-title = Nichts zu unterschreiben
nothing-to-sign = Dieses Dokument steht nicht zur Unterschrift bereit.
closed-title = Dieses Dokument ist geschlossen
closed = Es kann nicht mehr unterschrieben werden.
unavailable-title = Im Moment nicht verfügbar
unavailable-document = Das Dokument kann gerade nicht angezeigt werden. Ihr Link ist gültig: Versuchen Sie es in einigen Minuten noch einmal.
unavailable-identity = Ihre Identität kann gerade nicht geprüft werden. Ihr Link ist gültig: Versuchen Sie es in einigen Minuten noch einmal.
unavailable-payment = Die Zahlung ist gerade nicht möglich. Ihr Link ist gültig: Versuchen Sie es in einigen Minuten noch einmal.
not-yet-title = Sie sind noch nicht an der Reihe
not-yet = { $name } unterschreibt vor Ihnen. Sie erhalten eine E-Mail, wenn Sie an der Reihe sind.
not-yet-other = Eine andere Person unterschreibt vor Ihnen. Sie erhalten eine E-Mail, wenn Sie an der Reihe sind.
signed-thanks = Vielen Dank
signed-title = Sie haben unterschrieben
signed-document = Sie haben „{ $document }“ unterschrieben.
signed-still-to-sign = Es fehlen noch die Unterschriften von:
signed-copy-later = Sie erhalten Ihre Kopie per E-Mail, sobald alle Parteien unterschrieben haben.
signed-copy-expired = Alle Parteien haben unterschrieben. Dieser Link ist abgelaufen, deshalb senden wir Ihnen Ihre Kopie per E-Mail.
signed-mail-copy = Meine Kopie per E-Mail senden
signed-copy-ready = Alle Parteien haben unterschrieben. Laden Sie Ihre Kopie herunter; wir senden sie Ihnen auch per E-Mail.
signed-download = Ihre Kopie herunterladen
signed-certificate = Abschlusszertifikat herunterladen
certificate-name = Abschlusszertifikat
continue-to = Weiter zu { $host }
close-page = Sie können diese Seite schließen.
you-declined-title = Sie haben abgelehnt
you-declined = Wir haben den Absender benachrichtigt.

## Payment

payment-title = Zahlung
payment-for = Für „{ $document }“
payment-due = Fälliger Betrag:
payment-pay = { $amount } bezahlen
payment-other-way = Der Absender zieht diese Zahlung auf anderem Weg ein.
payment-needs-script = Zum Bezahlen ist JavaScript in Ihrem Browser erforderlich.
payment-back = Zurück zum Dokument
payment-received-title = Zahlung eingegangen
payment-paid = Bezahlt:
payment-sandbox = Dies ist eine Testumgebung für die Entwicklung: Es fließt kein Geld.
payment-load-failed = Das Zahlungsformular konnte nicht geladen werden.
payment-failed = Die Zahlung ist fehlgeschlagen.

## Identity check

identity-title = Bestätigen Sie Ihre Identität
identity-before = Bevor „{ $document }“ geöffnet wird, möchte der Absender sichergehen, dass Sie es sind.
identity-code-title = Geben Sie Ihren Code ein
identity-questions-title = Beantworten Sie diese Fragen
identity-wrong-title = Ihre Antworten waren nicht richtig
identity-wait-title = Kommen Sie später wieder
identity-exhausted-title = Keine weiteren Versuche
identity-busy-title = Einen Moment
identity-unavailable-title = Ihre Identität konnte nicht geprüft werden
identity-time-over = Die Frist ist abgelaufen. Sie können neu beginnen.
identity-wrong-code = Dieser Code ist nicht richtig. Wir haben Ihnen einen neuen gesendet.
identity-not-accepted = Ihre Angaben wurden nicht angenommen. Prüfen Sie sie und versuchen Sie es noch einmal.
identity-too-many = Es wurden zu viele Codes angefordert. Warten Sie eine Weile, bevor Sie es noch einmal versuchen.
identity-try-later = Der Identitätsdienst hat nicht geantwortet. Versuchen Sie es gleich noch einmal.
identity-first-name = Vorname
identity-last-name = Nachname
identity-phone = Mobiltelefon
identity-birth = Geburtsdatum
identity-ssn = Letzte vier Ziffern Ihrer SSN
identity-line1 = Straße und Hausnummer
identity-line2 = Wohnung oder Zusatz
identity-city = Ort
identity-state = Bundesstaat
identity-zip = ZIP Code
identity-consent = Ich bin damit einverstanden, dass diese Angaben an einen Dienst zur Identitätsprüfung gesendet werden, der Aufzeichnungen über mich abruft, um daraus Fragen zu bilden, die ich beantworten kann.
identity-kept = Sie werden nur für diese Prüfung verwendet und hier nicht aufbewahrt: Aufbewahrt werden nur das Ergebnis, der Zeitpunkt und Ihre Internetadresse.
identity-continue = Weiter
identity-minutes = { $minutes ->
    [one] Sie haben dafür { $minutes } Minute Zeit.
   *[other] Sie haben dafür { $minutes } Minuten Zeit.
}
identity-code-sent = Ein Code wurde an Ihr Telefon gesendet.
identity-code = Code
identity-send = Antworten senden
identity-checking = Wir prüfen Ihre Antworten.
identity-look-again = Noch einmal nachsehen
identity-unavailable = Es gibt nicht genügend Aufzeichnungen über Sie, um Fragen zu stellen. Das ist nicht Ihre Schuld und hat keine Folgen.
identity-enter-again = Wenn Ihre Angaben einen Fehler enthielten, geben Sie sie noch einmal ein.
identity-other-way = Der Absender kann einen anderen Weg zum Unterschreiben einrichten.
identity-also-other-way = Der Absender kann auch einen anderen Weg zum Unterschreiben einrichten.
identity-try-again = Noch einmal versuchen
identity-wrong = { $left ->
    [1] Mindestens eine Antwort war falsch. Sie können es noch einmal mit anderen Fragen versuchen.
    [2] Mindestens eine Antwort war falsch. Sie können es noch zweimal mit anderen Fragen versuchen.
   *[other] Mindestens eine Antwort war falsch. Sie können es noch { $left }-mal mit anderen Fragen versuchen.
}
identity-exhausted = Sie haben alle Versuche verbraucht.
identity-wait-minutes = { $minutes ->
    [1] Sie können es in einer Minute noch einmal versuchen.
   *[other] Sie können es in { $minutes } Minuten noch einmal versuchen.
}
identity-wait-hours = { $hours ->
    [one] Sie können es in { $hours } Stunde noch einmal versuchen.
   *[other] Sie können es in { $hours } Stunden noch einmal versuchen.
}
identity-needed = Diese Angabe ist erforderlich
identity-consent-needed = Ohne Ihre Zustimmung geht es nicht weiter
identity-enter-code = Geben Sie den Code ein
identity-choose = Wählen Sie eine Antwort
identity-phone-digits = Geben Sie eine Telefonnummer nur mit Ziffern ein
identity-phone-area = Geben Sie Ihre Nummer mit Vorwahl ein
identity-enter-date = Geben Sie ein Datum ein
identity-enter-birth = Geben Sie Ihr Geburtsdatum ein
identity-four-digits = Geben Sie vier Ziffern ein
identity-five-digits = Geben Sie fünf Ziffern ein
identity-two-letters = Geben Sie die zwei Buchstaben des Bundesstaats ein
identity-hundred = Geben Sie höchstens 100 Zeichen ein

## Public verification page

verify-unknown-title = Diesen Eintrag gibt es nicht
verify-unknown = Prüfen Sie die Adresse, oder scannen Sie den Code auf dem Zertifikat noch einmal.
verify-record = Eintrag { $id }
verify-vaulted = Von allen Parteien unterschrieben. Das maßgebliche Exemplar liegt im Tresor.
verify-released = Von allen Parteien unterschrieben. Das maßgebliche Exemplar wurde an einen anderen Verwahrer übergeben.
verify-paper = Von allen Parteien unterschrieben. Ein Papieroriginal hat das maßgebliche Exemplar ersetzt.
verify-signed = { $name }, unterschrieben am { $moment }
verify-title = Ist Ihre Kopie die richtige?
verify-choose = Wählen Sie Ihre Datei. Sie wird auf diesem Gerät verglichen und nirgendwohin gesendet.
verify-file = PDF-Datei
verify-fingerprints = Fingerabdrücke (SHA-256)
verify-copy = die Kopie für die Parteien
verify-authoritative = das maßgebliche Exemplar
verify-comparing = Wird verglichen…
verify-unsupported = Dieser Browser kann keine Dateien vergleichen. Vergleichen Sie die Fingerabdrücke unten mit einem Programm wie sha256sum.
verify-same = Ja: Ihre Datei ist { $name }, unverändert.
verify-other = Nein: Ihre Datei ist eine andere, oder sie wurde verändert. Als verändert gilt auch eine Datei, die ausgedruckt und eingescannt oder von einem Programm neu gespeichert wurde.

## Certificate of completion

certificate-sent-by = Gesendet von
certificate-sent = Gesendet
certificate-completed = Abgeschlossen
certificate-vaulted = Im Tresor seit
certificate-reference = Referenz
certificate-signed-document = Unterschriebenes Dokument
certificate-authoritative = Maßgebliches Exemplar
certificate-copy = Kopie für die Parteien
certificate-opened = Zuerst geöffnet
certificate-identity = Identitätsprüfung
certificate-identity-passed = Identitätsfragen beantwortet, { $moment } (Anbieter { $provider })
certificate-consent = Zustimmung zur elektronischen Unterschrift
certificate-signed = Unterschrieben
certificate-file = Angehängte Datei
certificate-address = Internetadresse
certificate-browser = Browser
certificate-caption = Scannen Sie den Code oder öffnen Sie die Adresse, um diesen Eintrag zu prüfen und ob Ihre Kopie das unterschriebene Dokument ist.

## Widgets in other pages

embed-title = Einen Moment
embed-opening = Ihr Dokument wird geöffnet…
embed-needs-script = Diese Seite benötigt JavaScript. Öffnen Sie stattdessen den Link aus Ihrer E-Mail.
embed-expired-title = Diese Seite ist abgelaufen
embed-expired = Gehen Sie zur vorherigen Seite zurück und öffnen Sie sie noch einmal.
vault-download = Kopie herunterladen
vault-satisfied = Erfüllt.
vault-not-satisfied = Nicht erfüllt.

## Mails

mail-hello = Guten Tag { $name },
mail-hello-nobody = Guten Tag,
mail-button = { $label }:
mail-read-and-sign = Dokument lesen und unterschreiben
mail-link-note = Der Link ist nur für Sie bestimmt und gilt sieben Tage. Bitte leiten Sie diese E-Mail nicht weiter.
mail-deadline = Bitte unterschreiben Sie bis { $moment }.
mail-others = Weitere Unterzeichner: { $signers }.
mail-other = { $name } ({ $role })
mail-other-signed = { $name } ({ $role }, hat unterschrieben)
mail-invitation-subject = { $sender } bittet um Ihre Unterschrift: { $document }
mail-invitation = { $sender } bittet Sie, „{ $document }“ zu unterschreiben.
mail-reminder-subject = Erinnerung: { $sender } wartet auf Ihre Unterschrift: { $document }
mail-reminder = { $sender } wartet auf Ihre Unterschrift unter „{ $document }“.
mail-reminder-link = Sie können mit diesem neuen Link unterschreiben. Ältere Links sind möglicherweise abgelaufen.
mail-completed-subject = Abgeschlossen: { $document }
mail-completed = „{ $document }“ ist abgeschlossen: Alle Parteien haben unterschrieben.
mail-attached-certificate = Das unterschriebene Dokument liegt bei, als nicht maßgebliche Kopie gekennzeichnet, zusammen mit einem Zertifikat darüber, wer wann unterschrieben hat.
mail-attached = Das unterschriebene Dokument liegt bei, als nicht maßgebliche Kopie gekennzeichnet.
mail-linked = Das unterschriebene Dokument ist zu groß für eine E-Mail. Sie können Ihre Kopie sieben Tage lang herunterladen.
mail-too-large = Das unterschriebene Dokument ist zu groß für eine E-Mail.
mail-declined-subject = Abgelehnt: { $document }
mail-declined-by = { $name } hat es abgelehnt, „{ $document }“ zu unterschreiben.
mail-declined-reason = Angegebener Grund: { $reason }
mail-declined-self = Sie haben es abgelehnt, „{ $document }“ zu unterschreiben. { $sender } wurde benachrichtigt.
mail-declined-contact = Wenn Sie nicht abgelehnt haben, wenden Sie sich bitte an { $sender }.
mail-declined-other = Ein anderer Unterzeichner hat es abgelehnt, „{ $document }“ zu unterschreiben.
mail-declined-closed = Das Dokument ist geschlossen. Sie müssen nichts tun.
mail-withdrawn-subject = Zurückgezogen: { $document }
mail-withdrawn = { $sender } hat „{ $document }“ zurückgezogen.
mail-withdrawn-closed = Ihre Links öffnen es nicht mehr. Sie müssen nichts tun.
mail-endpoint-receiver = Ihrem Empfänger
mail-endpoint-failing-subject = Webhooks kommen bei { $host } nicht an
mail-endpoint-failing-since = Seit { $since } ist jeder Versuch gescheitert, ein Ereignis an { $host } zuzustellen.
mail-endpoint-failing-days = Seit Tagen ist jeder Versuch gescheitert, ein Ereignis an { $host } zuzustellen.
mail-endpoint-failing = Nach fünf Tagen mit Fehlern wird der Endpunkt abgeschaltet, und seine wartenden Zustellungen werden verworfen.
mail-endpoint-disabled-subject = Webhooks an { $host } sind abgeschaltet
mail-endpoint-gone = Der Webhook-Endpunkt bei { $host } wurde abgeschaltet. Er hat mit 410 (gone) geantwortet.
mail-endpoint-failed = Der Webhook-Endpunkt bei { $host } wurde abgeschaltet. Fünf Tage lang ist jeder Versuch gescheitert.
mail-endpoint-disabled = Ab jetzt werden keine Ereignisse mehr für ihn aufbewahrt. Schalten Sie ihn wieder ein, sobald sein Empfänger wieder erreichbar ist; was verpasst wurde, kann aus seinem Protokoll erneut zugestellt werden.
mail-release-subject = { $originator } bittet um die Herausgabe von { $document }
mail-release = { $originator } möchte das maßgebliche Exemplar von { $document } an { $recipient } herausgeben. Zweck: { $purpose }
mail-release-paper = { $originator } möchte das maßgebliche Exemplar von { $document } durch ein Papieroriginal für { $recipient } ersetzen. Zweck: { $purpose }
mail-release-answer = Ihre Organisation hat die Kontrolle über diesen Datensatz. Ohne Ihre Zustimmung bleibt das Exemplar im Tresor. Antworten Sie mit der Referenz unten.
mail-view = { $sender } gewährt Ihnen Einsicht in den unterschriebenen Vertrag { $document }. Der Link gilt bis { $moment }.
mail-view-note = Jede Einsicht wird aufgezeichnet. Der Link ist nur für Sie bestimmt; bitte leiten Sie ihn nicht weiter.

## Kinds of signers

signing-for-approver = Für { $name }, { $role } (genehmigt)
signing-for-witness = Für { $name }, { $role } (unterschreibt als Zeuge)
signing-approve = Genehmigen
signing-download = Zum Lesen herunterladen
consent-approval = Ich genehmige dieses Dokument elektronisch. Meine Genehmigung hier hat dieselbe Wirkung wie eine Genehmigung auf Papier.
signer-approver = { $role } (Genehmiger)
signer-witness = { $role } (Zeuge)

## Another person signs

delegate-summary = Eine andere Person soll an meiner Stelle unterschreiben
delegate-explained = Ihr eigener Link funktioniert danach nicht mehr, und der Absender erfährt, wen Sie benannt haben.
delegate-name = Name der Person
delegate-email = E-Mail-Adresse der Person
delegate-phone = Mobiltelefon der Person, mit Ländervorwahl
delegate-confirm = Diese Person bitten
delegate-name-missing = Geben Sie den Namen der Person ein
delegate-email-missing = Geben Sie eine E-Mail-Adresse ein
delegate-phone-missing = Geben Sie eine Mobilnummer mit Ländervorwahl ein
delegate-own-address = Das ist Ihre eigene Adresse
delegated-title = Weitergegeben
delegated = { $name } wurde gebeten, an Ihrer Stelle zu unterschreiben. Sie müssen nichts weiter tun.

## A code before the document

code-title = Geben Sie Ihren Code ein
code-locked = Es wurden zu viele falsche Codes eingegeben.
code-locked-until = { $minutes ->
    [1] Sie können es in einer Minute noch einmal versuchen. Wenn Sie die Codes nicht eingegeben haben, benachrichtigen Sie den Absender.
   *[other] Sie können es in { $minutes } Minuten noch einmal versuchen. Wenn Sie die Codes nicht eingegeben haben, benachrichtigen Sie den Absender.
}
code-will-send = Wir senden einen Code an { $address }.
code-sent = Wir haben einen Code an { $address } gesendet. Er gilt zehn Minuten.
code-will-send-phone = Wir senden eine SMS mit einem Code an Ihr Telefon. Die Nummer endet auf { $digits }.
code-sent-phone = Wir haben eine SMS mit einem Code an Ihr Telefon gesendet. Die Nummer endet auf { $digits }. Der Code gilt zehn Minuten.
code-passcode = Geben Sie den Zugangscode ein, den Ihnen der Absender mitgeteilt hat.
code-label = Code
code-passcode-label = Zugangscode
code-open = Dokument öffnen
code-send = Code an mich senden
code-send-another = Weiteren Code senden
code-wrong = Das ist nicht der richtige Code. Prüfen Sie ihn und versuchen Sie es noch einmal.
code-outdated = Dieser Code ist zu alt. Fordern Sie einen neuen an.
code-later = { $minutes ->
    [1] Sie können in einer Minute einen weiteren Code anfordern.
   *[other] Sie können in { $minutes } Minuten einen weiteren Code anfordern.
}
certificate-code = Code vor dem Dokument
certificate-code-mailed = Code per E-Mail, { $moment }
certificate-code-texted = Code per SMS an die Nummer mit den Endziffern { $digits }, { $moment }
certificate-code-passcode = Zugangscode des Absenders, { $moment }

## Page for readers

reading-hint = Sie können dieses Dokument lesen. Sie müssen es nicht unterschreiben.
reading-signers = Unterzeichner
reading-pending = { $name }, { $role }: hat es nicht geöffnet
reading-viewed = { $name }, { $role }: hat es geöffnet
reading-signed = { $name }, { $role }: hat unterschrieben
reading-declined = { $name }, { $role }: hat abgelehnt
reading-closed-title = Nichts zu lesen
reading-closed = Dieses Dokument ist nicht offen.
signed-first-page = Erste Seite des unterschriebenen Dokuments

## Vault widget

vault-safe-title = Sicher im Tresor
vault-safe = { $keeper } verwahrt hier das Original, unverändert, seit es unterschrieben wurde. Es gibt nur eines: Auf jeder Kopie steht, dass sie eine Kopie ist.
vault-handed-over-title = Übergeben
vault-handed-over = Das Original ist jetzt bei einem anderen Verwahrer. Diese Seite bewahrt seine Geschichte.
vault-not-yet-title = Noch nicht im Tresor
vault-not-yet = Das Original kommt in den Tresor, nachdem alle unterschrieben haben.
vault-since = Im Tresor seit
vault-over-since = Übergeben
vault-responsible = Verantwortlich
vault-kept-for = Verwahrt für
vault-who-signed = Wer unterschrieben hat
vault-signed-at = Unterschrieben am { $moment }
vault-unsigned = Hat nicht unterschrieben
vault-what-happened = Was geschehen ist
vault-experts = Einzelheiten für Fachleute
vault-record-number = Nummer des Eintrags
vault-hash = SHA-256 des Originals
vault-checks = { $passed } von { $total } Prüfungen nach UCC §9-105 sind erfüllt
inspect-hint = { $sender } gewährt Ihnen bis { $moment } Einsicht in diesen Datensatz. Jede Einsicht wird aufgezeichnet.
inspect-open = Datensatz öffnen
inspect-control = Kontrolle
inspect-controller = Kontrolliert von
inspect-since = Seit
inspect-originator = Erstellt von
inspect-pledgee = Verpfändet an
inspect-download = Kopie mit Wasserzeichen herunterladen
inspect-over-title = Diese Einsicht ist beendet
inspect-over = Bitten Sie die Organisation, die Ihnen den Link geschickt hat, um einen neuen.
copy-line = Kopie für { $holder }, { $party } · { $moment } · { $purpose } · { $id }
copy-sold = Verkauft { $moment }
paper-line = Papieroriginal von { $id } · umgewandelt { $moment } für { $recipient } · ersetzt das elektronische Exemplar mit SHA-256 { $hash }
join-title = { $sender } lädt { $name } ein
join-hint = { $sender } möchte { $name } hier Verträge abtreten. Treten Sie bei, um die Kontrolle zu übernehmen: { $name } erhält eine Organisation und einen Schlüssel für die API.
join-button = Beitreten
join-done-title = { $name } ist beigetreten
join-done = { $sender } hat diese Kennung erhalten und kann Sie jetzt benennen.
join-organization = Kennung Ihrer Organisation
join-key = API-Schlüssel
join-keep = Bewahren Sie den Schlüssel sicher auf: Er wird nicht noch einmal angezeigt.
join-over-title = Diese Einladung ist beendet
join-over = Sie wurde verwendet, oder ihre sieben Tage sind vorbei. Bitten Sie um eine neue.
statement-title = Erklärung über die Kontrolle
statement-controlled = Kontrolliert von { $controller }
statement-still = Das gilt auch jetzt noch.
statement-over = Seitdem ist die Kontrolle übergegangen, oder das Original hat den Tresor verlassen.
statement-issued = Stand
statement-requested-by = Ausgestellt auf Verlangen von
statement-jurisdiction = Rechtsordnung
statement-pdf = Als PDF herunterladen
statement-json = Als Daten herunterladen (JSON)
statement-chain = Wer die Kontrolle hatte
statement-key = Fingerabdruck des Signaturschlüssels
statement-check = Diese Erklärung prüfen unter
statement-proof = Nachweis
statement-act-stored = der Vertrag wurde verwahrt
statement-act-accepted = hat die Kontrolle übernommen
statement-act-transfer = hat die Kontrolle durch Übertragung übernommen
statement-note = Die hier genannten Einträge gehören zu einem öffentlichen Protokoll mit unterschriebenem Kopf. Die Datendatei enthält sie mit ihren Nachweisen; das Programm holdfast-verify prüft sie ohne diesen Dienst. Die Erklärung gilt für den oben genannten Zeitpunkt.
history-created = Das Dokument wurde vorbereitet
history-sent = Es wurde an die Unterzeichner gesendet
history-viewed = { $name } hat es geöffnet
history-signed = { $name } hat unterschrieben
history-signer = Ein Unterzeichner
history-completed = Alle haben unterschrieben
history-declined = Ein Unterzeichner hat abgelehnt
history-voided = Der Absender hat es zurückgezogen
history-expired = Die Frist zum Unterschreiben ist abgelaufen
history-stored = Das Original wurde in den Tresor gelegt
history-released = Das Original wurde an { $recipient } übergeben
history-paper = Ein Papieroriginal für { $recipient } hat das elektronische Original ersetzt
history-control = { $party } hat die Kontrolle übernommen
history-recipient = einen anderen Verwahrer
history-tampered = Das verwahrte Original wurde verändert vorgefunden
history-changed = { $name } unterschreibt an Stelle von { $previous }

## Mails about approving, witnessing, reading and codes

mail-approval-subject = { $sender } bittet um Ihre Genehmigung: { $document }
mail-approval = { $sender } bittet Sie, „{ $document }“ zu genehmigen.
mail-witness-subject = { $sender } bittet um Ihre Unterschrift als Zeuge: { $document }
mail-witness = { $sender } bittet Sie, „{ $document }“ als Zeuge zu unterschreiben.
mail-viewing-subject = { $sender } zeigt Ihnen: { $document }
mail-viewing = { $sender } hat „{ $document }“ an die Unterzeichner gesendet und lässt Sie das Dokument lesen.
mail-viewing-copy = Sie müssen nichts tun. Sie erhalten eine Kopie, sobald alle Parteien unterschrieben haben.
mail-read = Dokument lesen
mail-code-subject = Ihr Code: { $code }
mail-code = Ihr Code für „{ $document }“ von { $sender } lautet { $code }.
mail-code-use = Geben Sie ihn auf der Seite ein, die danach gefragt hat. Er gilt einmal, { $minutes } Minuten lang.
mail-code-note = Niemand wird Sie am Telefon nach diesem Code fragen. Wenn Sie ihn nicht angefordert haben, ignorieren Sie diese E-Mail.
text-invitation = { $sender } bittet Sie, „{ $document }“ zu unterschreiben:
text-reminder = Erinnerung: { $sender } wartet auf Ihre Unterschrift unter „{ $document }“:
text-code = { $code } ist Ihr Code für „{ $document }“ von { $sender }. Er gilt zehn Minuten. Niemand wird Sie am Telefon danach fragen.
custody-title = Verwahrungsnachweis
custody-file-title = Verwahrungsnachweis für { $id }
custody-file-subject = Wer das maßgebliche Exemplar von „{ $name }“ verwahrt hat, seit wann, und wie das geprüft wurde
custody-unnamed = Dokument ohne Namen
custody-issued = Ausgestellt von { $issuer } am { $moment }
custody-recorded = Erstellt am { $moment }
custody-certificate = Zertifikat der Prüfungen, über die dieser Nachweis berichtet
custody-not-given = nicht angegeben
custody-envelope = Vorgang
custody-customer = Kunde
custody-custodian = Verwahrer
custody-secured-party = Gesicherte Partei
custody-documents = Dokumente
custody-algorithm = Hashverfahren
custody-copy = Nicht maßgebliche Kopie
custody-parties = Parteien
custody-party = Partei
custody-email = E-Mail
custody-role = Rolle
custody-unsigned = nicht unterschrieben
custody-checks = Prüfungen der Kontrolle
custody-requirement = Anforderung
custody-reference = Fundstelle
custody-finding = Ergebnis
custody-timeline = Verlauf der Verwahrung
custody-time = Zeit
custody-actor = Wer
custody-event = Was
custody-made = Wie dieser Nachweis entstand
custody-rules = Regelkomponente
custody-attachment = Anlage
custody-note = Das angehängte Zertifikat ist die maschinenlesbare Form dieses Nachweises. Wer das maßgebliche Exemplar hat, kann jede Prüfung wiederholen: den oben genannten Hash über die Bytes des Dokuments berechnen, mit diesem Nachweis vergleichen und die hier genannte Komponente auf die gespeicherten Tatsachen anwenden.
custody-key = API-Schlüssel { $id }
custody-payer = { $email } (Zahler)
custody-second = Zweite Bewertung
custody-second-score = { $score } Punkte, von { $component } ({ $sha256 })
custody-rewritten = Neu geschrieben
custody-seal = Siegel
custody-seal-certificate = Zertifikat { $sha256 } (SHA-256)
custody-unsealed = ohne Siegel: Das Dokument ist gegen jede Änderung zertifiziert
custody-trusted-time = Bestätigte Zeit
custody-stamped = { $moment }, von { $authority }
custody-stamped-unchecked = { $moment }, von { $authority } (eine Stelle, die nicht geprüft wird)
custody-no-time = keine bestätigte Zeit: { $reason }
custody-log = Protokoll aller Verläufe
custody-log-head = { $origin }: { $size } Einträge davor, Wurzel { $root }
custody-existing-signature = Vorhandene Unterschrift { $field }
custody-signature-valid = gültige Unterschrift
custody-signature-valid-stamp = gültiger Zeitstempel
custody-signature-altered = das Dokument wurde nach der Unterschrift verändert
custody-signature-not-verifiable = konnte nicht geprüft werden
custody-signature-signer = von { $signer }
custody-signature-stamped = Zeitstempel vom { $moment }
custody-signature-clock = laut Uhr der unterschreibenden Person am { $moment }
custody-signature-level = Stufe { $level }
custody-signature-trusted = Zertifikat vertrauenswürdig
custody-signature-untrusted = Zertifikat nicht vertrauenswürdig
custody-signature-trust-not-checked = Zertifikat nicht gegen Stammzertifikate geprüft
custody-signature-changed-content = eine spätere Fassung hat den Inhalt geändert
custody-signature-changed-annotations = eine spätere Fassung hat Anmerkungen geändert
custody-signature-changed-fields = eine spätere Fassung hat Formularfelder geändert
custody-signature-part = deckt nur einen Teil der Fassung ab
custody-picture = die hochgeladene Datei ist ein Bild ({ $type }); SHA-256 der daraus erzeugten PDF-Datei: { $sha256 }
custody-repaired = der Aufbau des Dokuments musste repariert werden; SHA-256 des reparierten Dokuments: { $sha256 }
custody-sandbox = Testumgebung
custody-sandbox-note = eine Zahlung oder eine Identitätsprüfung wurde nachgestellt und beweist nichts
custody-identity = Identität
custody-identity-note = jemand unterschrieb mit einem anderen Browser als dem, der die Identitätsprüfung bestand
custody-final = Schlussnachweis
custody-final-note = das Original wurde in den Tresor gelegt und an einen anderen Verwahrer übergeben
custody-final-paper = das Original wurde in den Tresor gelegt und durch ein Papieroriginal ersetzt
custody-handed-over-to = Übergeben an
custody-purpose = Zweck
custody-authorized-by = Genehmigt von
custody-requested-by = Verlangt von
mark-secured-party = Gesicherte Partei:
builder-done = Fertig
builder-undo = Rückgängig
builder-preview = Vorschau
builder-save = Speichern
builder-new-fields = Neue Felder
builder-add = Feld hinzufügen
builder-add-hint = Ziehen Sie eines auf eine Seite, oder drücken Sie darauf, um es auf der sichtbaren Seite einzufügen.
builder-signature = Unterschrift
builder-initials = Initialen
builder-text = Text
builder-date = Datum
builder-number = Zahl
builder-checkbox = Kästchen
builder-select = Liste
builder-radio = Auswahl
builder-attachment = Datei
builder-signed-by = Auszufüllen von
builder-add-role = Rolle hinzufügen
builder-role-name = Name der Rolle
builder-role-example = Zum Beispiel Verkäufer
builder-add-role-button = Hinzufügen
builder-cancel = Abbrechen
builder-document = Dokument
builder-choose = PDF auswählen
builder-selected = Ausgewähltes Feld
builder-selected-hint = Wählen Sie ein Feld auf einer Seite. Pfeiltasten verschieben es, mit Umschalt ändern sie die Größe; Entf löscht es.
builder-edit = Bearbeiten
builder-close = Schließen
builder-name = Name
builder-role = Rolle
builder-required = Pflichtfeld
builder-fixed = Fest: Wer unterschreibt, kann es nicht ändern
builder-prefilled = Vorausgefüllt mit
builder-options = Optionen, eine in jeder Zeile
builder-rules = Regeln
builder-min = Mindestens (eine Zahl oder ein Datum wie 2026-01-31, today, today+30)
builder-max = Höchstens
builder-max-length = Höchstzahl der Zeichen
builder-pattern = Regulärer Ausdruck für den ganzen Text
builder-message = Meldung, wenn der Text nicht passt
builder-formula = Formel, zum Beispiel [Preis] * [Satz] / 100
builder-decimals = Nachkommastellen des Ergebnisses
builder-condition = Gezeigt, wenn (Feld, Feld:Wert, !Feld oder !Feld:Wert)
builder-required-if = Pflichtfeld, wenn
builder-remove = Dieses Feld entfernen
builder-preview-as = als
builder-preview-frame = Was die unterschreibende Person sehen wird
builder-sample-signer = Erika Beispiel
builder-ended = Diese Sitzung ist beendet. Öffnen Sie den Editor noch einmal.
builder-no-answer = Es kam keine Antwort. Versuchen Sie es noch einmal.
builder-page-not-shown = Eine Seite konnte nicht gezeigt werden.
builder-box = { $kind } { $name }, für { $role }, Seite { $page }
builder-no-room = Auf dieser Seite ist kein Platz mehr.
builder-option = Option { $number }
builder-role-exists = Diese Rolle gibt es schon.
builder-role-missing = Geben Sie einen Namen ein.
builder-uploading = Wird hochgeladen…
builder-imported = Aus dem Formular des Dokuments übernommene Felder: { $count }
builder-problem-needed = Etwas fehlt, oder ein Wert ist zu klein.
builder-problem-too-large = Ein Wert ist zu groß oder ein Text zu lang.
builder-problem-kind = Ein Wert hat die falsche Art.
builder-problem-page = Das Dokument hat diese Seite nicht.
builder-problem-outside = Das Feld liegt außerhalb seiner Seite.
builder-problem-type = Ein Feld mit diesem Namen hat einen anderen Typ.
builder-problem-rule = Felder dieses Typs können diese Regel nicht haben.
builder-problem-pattern = Dieser reguläre Ausdruck kann nicht verwendet werden.
builder-problem-condition = Diese Bedingung ist nicht lesbar.
builder-problem-formula = Diese Formel ist nicht lesbar.
builder-problem-unknown-field = Eine Regel nennt ein Feld, das es nicht gibt.
builder-problem-circular = Eine Regel hängt von ihrem eigenen Ergebnis ab.
builder-problem-fields = Nicht gespeichert: Einige Felder haben Fehler.
builder-problem-changed = Nicht gespeichert: Die Vorlage wurde an anderer Stelle geändert. Öffnen Sie den Editor erneut.
builder-problem-file = Diese Datei kann nicht verwendet werden. Wählen Sie eine PDF-Datei ohne Kennwort.

## Console

sign-in-subject = Anmelden bei { $organization }
sign-in-mail = Dieser Link meldet Sie als { $email } an. Er gilt einmal, bis { $until }.
sign-in-note = Wenn Sie ihn nicht angefordert haben, beachten Sie diese E-Mail nicht: ohne den Link kommt niemand hinein.
sign-in-button = Anmelden
sign-in-title = Anmelden
sign-in-hint = Sie erhalten einen Link per E-Mail. Ein Passwort gibt es nicht.
sign-in-email = E-Mail-Adresse
sign-in-send = Link anfordern
sign-in-sent-title = Sehen Sie in Ihr Postfach
sign-in-sent = Wenn jemand mit dieser Adresse Zugang hat, ist ein Link unterwegs. Er gilt einmal, 15 Minuten lang.
sign-in-as = Sie melden sich als { $email } bei { $organization } an.
sign-in-over-title = Dieser Link gilt nicht mehr
sign-in-over = Er wurde schon benutzt, oder seine Zeit ist abgelaufen.
console-navigation = Seiten
console-home = Übersicht
console-envelopes = Umschläge
console-users = Benutzer
console-sessions = Ihre Anmeldungen
console-sign-out = Abmelden
console-forbidden-title = Nicht für Ihre Rolle
console-forbidden = Ihre Rolle erlaubt das nicht, oder das Formular ist zu alt. Gehen Sie zurück und laden Sie die Seite neu.
console-no-envelopes = Ihre Rolle liest keine Umschläge.
console-waiting = Warten auf Unterschriften
console-signed = Unterschrieben, noch nicht im Tresor
console-declined = Abgelehnt
console-below = Im Tresor unter 100
console-findings = Gespeicherte Dokumente wurden verändert
console-nothing = Hier ist nichts.
console-all = Alle zeigen
console-older = Ältere Umschläge
console-search = Suchen
console-search-hint = Name, Person, Nummer oder externe Nummer
console-status = Status
console-all-statuses = Alle
console-score = Wertung { $score }
console-people = Personen
console-signed-at = Unterschrieben am
console-unsigned = Hat nicht unterschrieben
console-checks = Prüfungen des Gesetzes: { $score } von 100
console-stuck = Dieses Dokument ist unterschrieben und nicht im Tresor:
console-remind = Erinnerung senden
console-reminded = Die Unterzeichner erhalten einen neuen Link.
console-void = Zurückziehen
console-voided = Der Umschlag ist zurückgezogen.
console-reason = Grund
console-verify = Jetzt prüfen
console-verified = Der Nachweis ist gültig.
console-not-verified = Der Nachweis ist nicht gültig:
console-sessions-hint = Browser, in denen Sie angemeldet sind.
console-this-session = dieser Browser
console-signed-in = Angemeldet am
console-end-session = Beenden
console-invite = Einladen
console-invited = hat sich noch nicht angemeldet
console-ended = kein Zugang mehr
console-role = Rolle
console-change = Ändern
console-change-role = Rolle ändern
console-invite-again = Neuen Link senden
console-end-access = Zugang beenden
status-pending = angelegt
status-uploaded = hochgeladen
status-preparing = in Vorbereitung
status-sent = gesendet
status-viewed = geöffnet
status-completed = unterschrieben
status-vaulted = im Tresor
status-vaulted-out = herausgegeben
status-declined = abgelehnt
status-voided = zurückgezogen
status-expired = abgelaufen
role-owner = Inhaber
role-admin = Verwaltung
role-sender = Versand
role-compliance = Compliance
role-auditor = Prüfung
role-controller = Kontrolle
role-developer = Entwicklung
role-member = Mitglied
console-developers = Entwicklung
console-audit = Wer tat was
console-receivers = Empfänger von Webhooks
console-keys = API-Schlüssel
console-active = aktiv
console-inactive = abgeschaltet
console-failing = scheitert seit
console-last-used = Zuletzt benutzt am
console-deliveries = Zustellungen
console-newer = Neuere
console-earlier = Frühere
console-attempts = Versuche
console-no-answer = keine Antwort
console-send-again = Erneut senden
console-content = Inhalt
delivery-pending = wartet
delivery-delivered = zugestellt
delivery-failed = gescheitert
console-rules = Regeln
console-in-force = In Kraft
console-since = seit
console-planned = geplant für
console-requests = Änderungsanträge
console-policy = Zustimmungen, die eine Änderung braucht: { $count }
console-roll-back = zurücknehmen
console-policy-change = Richtlinie für Änderungen
console-approvals = { $given } von { $required } Zustimmungen
console-compared = { $differing } von { $compared } Unterlagen weichen ab
change-open = offen
change-applied = angewandt
change-refused = abgelehnt
change-withdrawn = zurückgezogen
change-outdated = überholt
change-expired = abgelaufen
review-approve = zugestimmt
review-refuse = abgelehnt
review-comment = Anmerkung
console-export = Als CSV ausgeben
console-from = Angelegt ab
console-to = bis
