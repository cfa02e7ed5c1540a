# Français, avec vouvoiement.

## Common

list-separator = {", "}
moment = { $date }, { $time } ({ $zone })
amount = { $number } { $currency }
yes = Oui
no = Non
reference = Référence : { $id }

## Errors as pages

error-missing-title = Cette page n’existe pas
error-missing = Ouvrez de nouveau le lien de votre e-mail, ou demandez-en un nouveau à l’expéditeur.
error-refused-title = Ce lien ne fonctionne pas
error-refused = Il a peut-être expiré, ou il est incomplet. Demandez-en un nouveau à l’expéditeur.
error-changed-title = Ce n’est pas possible pour le moment
error-changed = Le document a changé entre-temps. Ouvrez de nouveau le lien de votre e-mail.
error-incomplete-title = Il manque quelque chose
error-incomplete = Revenez en arrière et réessayez, ou ouvrez de nouveau le lien de votre e-mail.
error-busy-title = Un instant, s’il vous plaît
error-busy = Ce lien a été utilisé très souvent en peu de temps. Attendez une minute et réessayez.
error-large-title = Trop volumineux
error-large = L’image est trop volumineuse. Revenez en arrière et essayez-en une plus petite.
error-slow-title = La connexion était trop lente
error-slow = Vos saisies ne sont pas arrivées à temps. Revenez en arrière et réessayez.
error-unavailable-title = Indisponible pour le moment
error-unavailable = Votre lien est valable et vos saisies enregistrées sont conservées. Réessayez dans quelques minutes.
error-failed-title = Un problème est survenu
error-failed = Vos saisies enregistrées sont conservées. Réessayez dans quelques minutes, ou adressez-vous à l’expéditeur.

## Signing form

signing-for = Pour { $name }, { $role }
signing-reading-view = Mode lecture
signing-document = Document
signing-page = Page { $number } sur { $count }
signing-page-text = Texte de la page { $number }
signing-your-fields = Vos champs
signing-title = Remplir et signer
signing-progress = { $done } champs obligatoires remplis sur { $total }
signing-problems = Vérifiez ces champs :
signing-consent-field = Votre consentement
signing-reason-field = Votre motif
signing-document-field = Le document
signing-required = (obligatoire)
signing-fixed = (fixe)
signing-choose = Choisissez…
signing-type-name = Saisissez votre nom
signing-type-initials = Saisissez votre paraphe
signing-your-signature = Votre signature
signing-sign-again = Signer de nouveau
signing-not-filled-in = Non rempli
signing-style = Style de la signature saisie
signing-style-casual = style décontracté
signing-style-formal = style soigné
signing-style-light = style fin
signing-check = Vérifiez vos réponses
signing-finish = Terminer et signer
signing-check-first = Vérifier d’abord
signing-save = Enregistrer pour plus tard
signing-back = Retour
signing-next = Suivant
signing-start = Commencer
signing-continue = Continuer
signing-skip = Passer
signing-check-and-sign = Vérifier et signer
signing-not-answered = Sans réponse : vaut Non
signing-how-to-give = Mode de saisie : { $field }
signing-type = Saisir
signing-draw = Dessiner
signing-upload = Importer
signing-use-mine = Utiliser ma signature
signing-sign-as = Signer en tant que { $name }
signing-initial-as = Parapher { $name }
signing-draw-hint = Dessinez avec le doigt, un stylet ou la souris
signing-clear = Effacer
signing-drawing-area = Zone de dessin : { $field }
signing-choose-picture = Choisissez une image PNG ou JPEG de votre signature
signing-picture = Image : { $field }
signing-picture-unreadable = Ce fichier ne peut pas être lu comme une image.
signing-saving = Enregistrement…
signing-saved = Enregistré
signing-preview = Ceci est un aperçu : rien n’est enregistré ni signé.
signing-offline = Pas de connexion. Vos saisies sont conservées ici et seront enregistrées dès son retour.
signing-offline-finish = Pas de connexion. Vos saisies sont conservées ici ; signez à son retour.
signing-no-text = Cette page ne contient pas de texte.
signing-text-failed = Le texte n’a pas pu être chargé.
mark-sign = Signer
mark-initial = Parapher
mark-date = Date
mark-fill-in = Remplir
mark-attach = Joindre
attachment-add = Joindre
attachment-remove = Retirer
attachment-hint = Un fichier PDF, PNG ou JPEG de { $limit } Mo au maximum. Il fera partie du document.
attachment-files = Fichiers joints
attachment-failed = Le fichier n’a pas pu être envoyé. Réessayez.

## Consent

consent-statement = J’accepte de signer ce document par voie électronique. Ma signature ici a le même effet qu’une signature sur papier.
consent-about = À propos de la signature électronique
consent-disclosure = Vous pouvez refuser et demander à l’expéditeur une version papier. Vous recevrez par e-mail une copie du document signé, que vous pourrez lire avec tout lecteur PDF et imprimer. L’heure, votre adresse internet et le nom de votre navigateur sont conservés avec votre signature.

## Declining

decline-summary = Je ne souhaite pas signer
decline-reason = Motif
decline-open = Refuser…
decline-warning = Un refus clôt ce document pour toutes les parties et ne peut pas être annulé. Votre motif est communiqué à l’expéditeur.
decline-confirm = Refuser pour toutes les parties

## Problems of entries

problem-required = Ce champ est obligatoire
problem-unsigned = Signez ici, ou dans un autre de vos champs de signature
problem-consent = Votre consentement à la signature électronique est nécessaire
problem-document-changed = Un autre signataire a signé depuis que vous avez ouvert le document. Relisez les pages
problem-reason = Indiquez pourquoi vous refusez
problem-too-long = { $limit } caractères au maximum
problem-number = Saisissez un nombre
problem-date = Saisissez une date au format année-mois-jour
problem-option = Choisissez l’une des options
problem-too-small = Au moins { $limit }
problem-too-big = Au plus { $limit }
problem-too-early = Pas avant le { $limit }
problem-too-late = Pas après le { $limit }
problem-result-changed = Le résultat a changé. Vérifiez-le
problem-pattern = Cette réponse n’a pas le format attendu
problem-attachment-size = Joignez un fichier de { $limit } Mo au maximum
problem-attachments-size = L’ensemble des fichiers ne peut dépasser { $limit } Mo
problem-attachment-type = Joignez un fichier PDF, PNG ou JPEG
problem-attachment-pages = Joignez un PDF de { $limit } pages au maximum
problem-attachment-unreadable = Ce fichier est illisible. Il est peut-être endommagé ou protégé par un mot de passe
problem-picture-format = Utilisez une image PNG ou JPEG
problem-picture-size = Utilisez une image de { $limit } Ko au maximum
problem-picture-unreadable = Cette image ne peut pas être lue

## Pages of a signing link

link-unknown-title = Ce lien ne fonctionne pas
link-unknown = Vérifiez qu’il est complet, ou demandez-en un nouveau à l’expéditeur.
link-expired-title = Ce lien a expiré
link-expired = Les liens fonctionnent pendant une durée limitée, afin de protéger votre document.
link-renew = M’envoyer un nouveau lien par e-mail
link-mailed-title = Un e-mail est en route
link-mailed = Consultez votre boîte de réception : le lien a été envoyé à l’adresse de votre invitation.
link-too-soon-title = Consultez votre boîte de réception
link-too-soon = Nous vous avons envoyé un e-mail il y a quelques minutes. Consultez votre boîte de réception, ou réessayez plus tard.
replaced-title = Signataire remplacé
replaced = Une autre personne a été invitée à signer à votre place.
incomplete-title = Il manque quelque chose
incomplete = Revenez en arrière et réessayez.
withdrawn-title = Retiré
withdrawn = L’expéditeur a retiré ce document.
expired-title = Expiré
expired = Le délai de signature de ce document est dépassé.
declined-by-other-title = Refusé
declined-by-other = Un autre signataire a refusé ce document.
nothing-to-sign-title = Rien à signer
nothing-to-sign = Ce document n’est pas ouvert à la signature.
closed-title = Ce document est clos
closed = Il ne peut plus être signé.
unavailable-title = Indisponible pour le moment
unavailable-document = Le document ne peut pas être affiché pour le moment. Votre lien est valable : réessayez dans quelques minutes.
unavailable-identity = Votre identité ne peut pas être vérifiée pour le moment. Votre lien est valable : réessayez dans quelques minutes.
unavailable-payment = Le paiement n’est pas possible pour le moment. Votre lien est valable : réessayez dans quelques minutes.
not-yet-title = Ce n’est pas encore votre tour
not-yet = { $name } signe avant vous. Vous recevrez un e-mail quand ce sera votre tour.
not-yet-other = Une autre personne signe avant vous. Vous recevrez un e-mail quand ce sera votre tour.
signed-thanks = Merci
signed-title = Vous avez signé
signed-document = Vous avez signé « { $document } ».
signed-still-to-sign = Doivent encore signer :
signed-copy-later = Vous recevrez votre copie par e-mail quand toutes les parties auront signé.
signed-copy-expired = Toutes les parties ont signé. Ce lien a expiré, c’est pourquoi nous vous enverrons votre copie par e-mail.
signed-mail-copy = M’envoyer ma copie par e-mail
signed-copy-ready = Toutes les parties ont signé. Téléchargez votre copie ; nous vous l’envoyons aussi par e-mail.
signed-download = Télécharger votre copie
signed-certificate = Télécharger le certificat d’achèvement
certificate-name = Certificat d’achèvement
continue-to = Continuer vers { $host }
close-page = Vous pouvez fermer cette page.
you-declined-title = Vous avez refusé
you-declined = Nous avons averti l’expéditeur.

## Payment

payment-title = Paiement
payment-for = Pour « { $document } »
payment-due = Montant dû :
payment-pay = Payer { $amount }
payment-other-way = L’expéditeur encaisse ce paiement par un autre moyen.
payment-needs-script = Le paiement nécessite JavaScript dans votre navigateur.
payment-back = Retour au document
payment-received-title = Paiement reçu
payment-paid = Payé :
payment-sandbox = Ceci est un environnement d’essai pour le développement : aucun argent n’est transféré.
payment-load-failed = Le formulaire de paiement n’a pas pu être chargé.
payment-failed = Le paiement n’a pas abouti.

## Identity check

identity-title = Confirmez votre identité
identity-before = Avant l’ouverture de « { $document } », l’expéditeur souhaite s’assurer qu’il s’agit bien de vous.
identity-code-title = Saisissez votre code
identity-questions-title = Répondez à ces questions
identity-wrong-title = Vos réponses n’étaient pas correctes
identity-wait-title = Revenez plus tard
identity-exhausted-title = Plus aucune tentative
identity-busy-title = Un instant
identity-unavailable-title = Votre identité n’a pas pu être vérifiée
identity-time-over = Le délai est dépassé. Vous pouvez recommencer.
identity-wrong-code = Ce code n’est pas correct. Nous vous en avons envoyé un nouveau.
identity-not-accepted = Vos saisies n’ont pas été acceptées. Vérifiez-les et réessayez.
identity-too-many = Trop de codes ont été demandés. Attendez un peu avant de réessayer.
identity-try-later = Le service d’identité n’a pas répondu. Réessayez dans un instant.
identity-first-name = Prénom
identity-last-name = Nom
identity-phone = Téléphone portable
identity-birth = Date de naissance
identity-ssn = Quatre derniers chiffres de votre SSN
identity-line1 = Numéro et rue
identity-line2 = Appartement ou complément
identity-city = Ville
identity-state = État
identity-zip = Code postal
identity-consent = J’accepte que ces informations soient envoyées à un service de vérification d’identité, qui consulte des données me concernant pour établir des questions auxquelles je peux répondre.
identity-kept = Elles servent à cette seule vérification et ne sont pas conservées ici : seuls le résultat, son heure et votre adresse internet le sont.
identity-continue = Continuer
identity-minutes = { $minutes ->
    [one] Vous disposez de { $minutes } minute.
   *[other] Vous disposez de { $minutes } minutes.
}
identity-code-sent = Un code a été envoyé à votre téléphone.
identity-code = Code
identity-send = Envoyer les réponses
identity-checking = Nous vérifions vos réponses.
identity-look-again = Actualiser
identity-unavailable = Il n’existe pas assez de données à votre sujet pour poser des questions. Ce n’est pas de votre faute et c’est sans conséquence.
identity-enter-again = Si vos saisies contenaient une erreur, saisissez-les de nouveau.
identity-other-way = L’expéditeur peut prévoir une autre façon de signer.
identity-also-other-way = L’expéditeur peut aussi prévoir une autre façon de signer.
identity-try-again = Réessayer
identity-wrong = { $left ->
    [1] Au moins une réponse était fausse. Vous pouvez essayer encore une fois, avec d’autres questions.
    [2] Au moins une réponse était fausse. Vous pouvez essayer encore deux fois, avec d’autres questions.
   *[other] Au moins une réponse était fausse. Vous pouvez essayer encore { $left } fois, avec d’autres questions.
}
identity-exhausted = Vous avez utilisé toutes les tentatives.
identity-wait-minutes = { $minutes ->
    [1] Vous pourrez réessayer dans une minute.
   *[other] Vous pourrez réessayer dans { $minutes } minutes.
}
identity-wait-hours = { $hours ->
    [one] Vous pourrez réessayer dans { $hours } heure.
   *[other] Vous pourrez réessayer dans { $hours } heures.
}
identity-needed = Cette information est nécessaire
identity-consent-needed = Votre consentement est nécessaire pour continuer
identity-enter-code = Saisissez le code
identity-choose = Choisissez une réponse
identity-phone-digits = Saisissez un numéro de téléphone en chiffres uniquement
identity-phone-area = Saisissez votre numéro avec son indicatif
identity-enter-date = Saisissez une date
identity-enter-birth = Saisissez votre date de naissance
identity-four-digits = Saisissez quatre chiffres
identity-five-digits = Saisissez cinq chiffres
identity-two-letters = Saisissez les deux lettres de l’État
identity-hundred = Saisissez 100 caractères au maximum

## Public verification page

verify-unknown-title = Cet enregistrement n’existe pas
verify-unknown = Vérifiez l’adresse, ou scannez de nouveau le code du certificat.
verify-record = Enregistrement { $id }
verify-vaulted = Signé par toutes les parties. L’exemplaire faisant foi est dans le coffre.
verify-released = Signé par toutes les parties. L’exemplaire faisant foi a été remis à un autre dépositaire.
verify-paper = Signé par toutes les parties. Un original papier a remplacé l’exemplaire faisant foi.
verify-signed = { $name }, signé le { $moment }
verify-title = Votre copie est-elle la bonne ?
verify-choose = Choisissez votre fichier. Il est comparé sur cet appareil et n’est envoyé nulle part.
verify-file = Fichier PDF
verify-fingerprints = Empreintes (SHA-256)
verify-copy = la copie destinée aux parties
verify-authoritative = l’exemplaire faisant foi
verify-comparing = Comparaison…
verify-unsupported = Ce navigateur ne peut pas comparer de fichiers. Comparez les empreintes ci-dessous avec un programme tel que sha256sum.
verify-same = Oui : votre fichier est { $name }, sans modification.
verify-other = Non : votre fichier en est un autre, ou il a été modifié. Un fichier imprimé puis numérisé, ou enregistré de nouveau par un programme, compte comme modifié.

## Certificate of completion

certificate-sent-by = Envoyé par
certificate-sent = Envoyé
certificate-completed = Terminé
certificate-vaulted = Dans le coffre depuis
certificate-reference = Référence
certificate-signed-document = Document signé
certificate-authoritative = Exemplaire faisant foi
certificate-copy = Copie destinée aux parties
certificate-opened = Première ouverture
certificate-identity = Vérification d’identité
certificate-identity-passed = questions d’identité répondues, { $moment } (prestataire { $provider })
certificate-consent = Consentement électronique
certificate-signed = Signé
certificate-file = Fichier joint
certificate-address = Adresse internet
certificate-browser = Navigateur
certificate-caption = Scannez le code ou ouvrez l’adresse pour vérifier cet enregistrement, et si votre copie est le document qui a été signé.

## Widgets in other pages

embed-title = Un instant
embed-opening = Ouverture de votre document…
embed-needs-script = Cette page nécessite JavaScript. Ouvrez plutôt le lien de votre e-mail.
embed-expired-title = Cette page a expiré
embed-expired = Revenez à la page précédente et ouvrez-la de nouveau.
vault-download = Télécharger une copie
vault-satisfied = Satisfait.
vault-not-satisfied = Non satisfait.

## Mails

mail-hello = Bonjour { $name },
mail-hello-nobody = Bonjour,
mail-button = { $label } :
mail-read-and-sign = Lire et signer le document
mail-link-note = Ce lien vous est réservé et fonctionne pendant sept jours. Merci de ne pas transférer cet e-mail.
mail-deadline = Merci de signer avant le { $moment }.
mail-others = Autres signataires : { $signers }.
mail-other = { $name } ({ $role })
mail-other-signed = { $name } ({ $role }, a signé)
mail-invitation-subject = { $sender } vous invite à signer : { $document }
mail-invitation = { $sender } vous invite à signer « { $document } ».
mail-reminder-subject = Rappel : { $sender } attend votre signature : { $document }
mail-reminder = { $sender } attend votre signature sur « { $document } ».
mail-reminder-link = Vous pouvez le signer avec ce nouveau lien. Les anciens liens ont peut-être expiré.
mail-completed-subject = Terminé : { $document }
mail-completed = « { $document } » est terminé : toutes les parties ont signé.
mail-attached-certificate = Le document signé est joint, marqué comme copie ne faisant pas foi, avec un certificat indiquant qui a signé et quand.
mail-attached = Le document signé est joint, marqué comme copie ne faisant pas foi.
mail-linked = Le document signé est trop volumineux pour un e-mail. Vous pouvez télécharger votre copie pendant sept jours.
mail-too-large = Le document signé est trop volumineux pour un e-mail.
mail-declined-subject = Refusé : { $document }
mail-declined-by = { $name } a refusé de signer « { $document } ».
mail-declined-reason = Motif indiqué : { $reason }
mail-declined-self = Vous avez refusé de signer « { $document } ». { $sender } en a été averti.
mail-declined-contact = Si vous n’avez pas refusé, veuillez contacter { $sender }.
mail-declined-other = Un autre signataire a refusé de signer « { $document } ».
mail-declined-closed = Le document est clos. Vous n’avez rien à faire.
mail-withdrawn-subject = Retiré : { $document }
mail-withdrawn = { $sender } a retiré « { $document } ».
mail-withdrawn-closed = Vos liens ne l’ouvrent plus. Vous n’avez rien à faire.
mail-endpoint-receiver = votre récepteur
mail-endpoint-failing-subject = Les webhooks n’arrivent pas à { $host }
mail-endpoint-failing-since = Toutes les tentatives de remise d’un événement à { $host } ont échoué depuis le { $since }.
mail-endpoint-failing-days = Toutes les tentatives de remise d’un événement à { $host } échouent depuis des jours.
mail-endpoint-failing = Après cinq jours d’échecs, le point de terminaison est désactivé et ses remises en attente sont abandonnées.
mail-endpoint-disabled-subject = Les webhooks vers { $host } sont désactivés
mail-endpoint-gone = Le point de terminaison de webhooks { $host } a été désactivé. Il a répondu 410 (gone).
mail-endpoint-failed = Le point de terminaison de webhooks { $host } a été désactivé. Toutes les tentatives ont échoué pendant cinq jours.
mail-endpoint-disabled = Désormais, les événements ne sont plus conservés pour lui. Réactivez-le quand son récepteur fonctionne de nouveau ; ce qui a été manqué peut être remis à partir de son journal.
mail-release-subject = { $originator } demande la remise de { $document }
mail-release = { $originator } souhaite remettre la copie faisant foi de { $document } à { $recipient }. Motif : { $purpose }
mail-release-paper = { $originator } souhaite remplacer la copie faisant foi de { $document } par un original papier pour { $recipient }. Motif : { $purpose }
mail-release-answer = Votre organisation contrôle ce dossier. Sans votre accord, la copie reste dans le coffre. Répondez avec la référence ci-dessous.
mail-view = { $sender } vous permet de consulter le contrat signé { $document }. Le lien est valable jusqu’au { $moment }.
mail-view-note = Chaque consultation est enregistrée. Ce lien vous est réservé ; ne le transférez pas.

## Kinds of signers

signing-for-approver = Pour { $name }, { $role } (approuve)
signing-for-witness = Pour { $name }, { $role } (signe en tant que témoin)
signing-approve = Approuver
signing-download = Télécharger pour lire
consent-approval = J’approuve ce document par voie électronique. Mon approbation ici a le même effet qu’une approbation sur papier.
signer-approver = { $role } (approbateur)
signer-witness = { $role } (témoin)

## Another person signs

delegate-summary = Une autre personne doit signer à ma place
delegate-explained = Votre propre lien ne fonctionnera plus ensuite, et l’expéditeur sera informé de la personne que vous avez désignée.
delegate-name = Nom de la personne
delegate-email = Adresse e-mail de la personne
delegate-phone = Téléphone portable de la personne, avec l’indicatif du pays
delegate-confirm = Demander à cette personne
delegate-name-missing = Saisissez le nom de la personne
delegate-email-missing = Saisissez une adresse e-mail
delegate-phone-missing = Saisissez un numéro de portable avec l’indicatif du pays
delegate-own-address = C’est votre propre adresse
delegated-title = Transmis
delegated = Nous avons demandé à { $name } de signer à votre place. Vous n’avez rien d’autre à faire.

## A code before the document

code-title = Saisissez votre code
code-locked = Trop de codes incorrects ont été saisis.
code-locked-until = { $minutes ->
    [1] Vous pourrez réessayer dans une minute. Si vous n’avez pas saisi ces codes, avertissez l’expéditeur.
   *[other] Vous pourrez réessayer dans { $minutes } minutes. Si vous n’avez pas saisi ces codes, avertissez l’expéditeur.
}
code-will-send = Nous enverrons un code à { $address }.
code-sent = Nous avons envoyé un code à { $address }. Il fonctionne pendant dix minutes.
code-will-send-phone = Nous enverrons un SMS avec un code sur votre téléphone. Son numéro se termine par { $digits }.
code-sent-phone = Nous avons envoyé un SMS avec un code sur votre téléphone. Son numéro se termine par { $digits }. Le code fonctionne pendant dix minutes.
code-passcode = Saisissez le code d’accès que l’expéditeur vous a donné.
code-label = Code
code-passcode-label = Code d’accès
code-open = Ouvrir le document
code-send = M’envoyer un code
code-send-another = Envoyer un autre code
code-wrong = Ce n’est pas le bon code. Vérifiez-le et réessayez.
code-outdated = Ce code est trop ancien. Demandez-en un nouveau.
code-later = { $minutes ->
    [1] Vous pourrez demander un autre code dans une minute.
   *[other] Vous pourrez demander un autre code dans { $minutes } minutes.
}
certificate-code = Code avant le document
certificate-code-mailed = code envoyé par e-mail, { $moment }
certificate-code-texted = code par SMS au numéro se terminant par { $digits }, { $moment }
certificate-code-passcode = code d’accès de l’expéditeur, { $moment }

## Page for readers

reading-hint = Vous pouvez lire ce document. Vous n’avez pas à le signer.
reading-signers = Signataires
reading-pending = { $name }, { $role } : ne l’a pas ouvert
reading-viewed = { $name }, { $role } : l’a ouvert
reading-signed = { $name }, { $role } : a signé
reading-declined = { $name }, { $role } : a refusé
reading-closed-title = Rien à lire
reading-closed = Ce document n’est pas ouvert.
signed-first-page = Première page du document signé

## Vault widget

vault-safe-title = En sécurité dans le coffre
vault-safe = { $keeper } conserve ici l’original, inchangé depuis sa signature. Il n’en existe qu’un : chaque copie indique qu’elle est une copie.
vault-handed-over-title = Remis
vault-handed-over = L’original se trouve désormais chez un autre dépositaire. Cette page conserve son historique.
vault-not-yet-title = Pas encore dans le coffre
vault-not-yet = L’original entre dans le coffre une fois que tous ont signé.
vault-since = Dans le coffre depuis
vault-over-since = Remis
vault-responsible = Responsable
vault-kept-for = Conservé pour
vault-who-signed = Qui a signé
vault-signed-at = A signé le { $moment }
vault-unsigned = N’a pas signé
vault-what-happened = Ce qui s’est passé
vault-experts = Détails pour les experts
vault-record-number = Numéro d’enregistrement
vault-hash = SHA-256 de l’original
vault-checks = { $passed } vérifications de UCC §9-105 satisfaites sur { $total }
inspect-hint = { $sender } vous permet de consulter ce dossier jusqu’au { $moment }. Chaque consultation est enregistrée.
inspect-open = Ouvrir le dossier
inspect-control = Contrôle
inspect-controller = Contrôlé par
inspect-since = Depuis
inspect-originator = Créé par
inspect-pledgee = Nanti au profit de
inspect-download = Télécharger une copie avec filigrane
inspect-over-title = Cette consultation est terminée
inspect-over = Demandez un autre lien à l’organisation qui vous l’a envoyé.
copy-line = Copie pour { $holder }, { $party } · { $moment } · { $purpose } · { $id }
copy-sold = Vendu { $moment }
paper-line = Original papier de { $id } · converti { $moment } pour { $recipient } · remplace l’exemplaire électronique de SHA-256 { $hash }
join-title = { $sender } invite { $name }
join-hint = { $sender } souhaite céder des contrats à { $name } ici. Rejoignez-nous pour en prendre le contrôle : { $name } reçoit une organisation et une clé pour l’API.
join-button = Rejoindre
join-done-title = { $name } a rejoint le service
join-done = { $sender } a reçu cet identifiant et peut maintenant vous désigner.
join-organization = Identifiant de votre organisation
join-key = Clé d’API
join-keep = Conservez la clé en lieu sûr : elle ne sera plus affichée.
join-over-title = Cette invitation est terminée
join-over = Elle a été utilisée, ou ses sept jours sont écoulés. Demandez-en une autre.
statement-title = Déclaration de contrôle
statement-controlled = Contrôlé par { $controller }
statement-still = C’est toujours le cas.
statement-over = Depuis, le contrôle a changé de mains ou l’original a quitté le coffre.
statement-issued = En date du
statement-requested-by = Établie à la demande de
statement-jurisdiction = Juridiction
statement-pdf = Télécharger en PDF
statement-json = Télécharger les données (JSON)
statement-chain = Qui a eu le contrôle
statement-key = Empreinte de la clé de signature
statement-check = Vérifier cette déclaration à l’adresse
statement-proof = Preuve
statement-act-stored = le contrat a été conservé
statement-act-accepted = a pris le contrôle
statement-act-transfer = a pris le contrôle lors d’un transfert
statement-note = Les entrées citées font partie d’un journal public dont la tête est signée. Le fichier de données les contient avec leurs preuves ; le programme holdfast-verify le vérifie sans ce service. La déclaration vaut pour le moment indiqué ci-dessus.
history-created = Le document a été préparé
history-sent = Il a été envoyé aux signataires
history-viewed = { $name } l’a ouvert
history-signed = { $name } a signé
history-signer = Un signataire
history-completed = Tous ont signé
history-declined = Un signataire a refusé
history-voided = L’expéditeur l’a retiré
history-expired = Le délai de signature est arrivé à son terme
history-stored = L’original a été placé dans le coffre
history-released = L’original a été remis à { $recipient }
history-paper = Un original papier pour { $recipient } a remplacé l’original électronique
history-control = { $party } a pris le contrôle
history-recipient = un autre dépositaire
history-tampered = Il a été constaté que l’original conservé avait été modifié
history-changed = { $name } signe à la place de { $previous }

## Mails about approving, witnessing, reading and codes

mail-approval-subject = { $sender } vous invite à approuver : { $document }
mail-approval = { $sender } vous invite à approuver « { $document } ».
mail-witness-subject = { $sender } vous invite à signer en tant que témoin : { $document }
mail-witness = { $sender } vous invite à signer « { $document } » en tant que témoin.
mail-viewing-subject = { $sender } vous montre : { $document }
mail-viewing = { $sender } a envoyé « { $document } » à ses signataires et vous permet de le lire.
mail-viewing-copy = Vous n’avez rien à faire. Vous recevrez une copie quand toutes les parties auront signé.
mail-read = Lire le document
mail-code-subject = Votre code : { $code }
mail-code = Votre code pour « { $document } » de { $sender } est { $code }.
mail-code-use = Saisissez-le sur la page qui l’a demandé. Il fonctionne une seule fois, pendant { $minutes } minutes.
mail-code-note = Personne ne vous demandera ce code par téléphone. Si vous ne l’avez pas demandé, ignorez cet e-mail.
text-invitation = { $sender } vous demande de signer « { $document } » :
text-reminder = Rappel : { $sender } attend votre signature sur « { $document } » :
text-code = { $code } est votre code pour « { $document } » de { $sender }. Il fonctionne pendant dix minutes. Personne ne vous le demandera par téléphone.
custody-title = Registre de conservation
custody-file-title = Registre de conservation de { $id }
custody-file-subject = Qui a détenu l’exemplaire faisant foi de « { $name } », depuis quand, et comment cela a été vérifié
custody-unnamed = Document sans nom
custody-issued = Établi par { $issuer } le { $moment }
custody-recorded = Enregistré le { $moment }
custody-certificate = Certificat des vérifications dont ce registre rend compte
custody-not-given = non indiqué
custody-envelope = Dossier
custody-customer = Client
custody-custodian = Dépositaire
custody-secured-party = Créancier garanti
custody-documents = Documents
custody-algorithm = Algorithme de hachage
custody-copy = Copie ne faisant pas foi
custody-parties = Parties
custody-party = Partie
custody-email = E-mail
custody-role = Rôle
custody-unsigned = non signé
custody-checks = Vérifications du contrôle
custody-requirement = Exigence
custody-reference = Référence
custody-finding = Constat
custody-timeline = Chaîne de conservation
custody-time = Heure
custody-actor = Auteur
custody-event = Événement
custody-made = Comment ce registre a été établi
custody-rules = Composant de règles
custody-attachment = Pièce jointe
custody-note = Le certificat joint est la forme de ce registre que lisent les programmes. Quiconque détient l’exemplaire faisant foi peut répéter chaque vérification : calculer l’empreinte indiquée ci-dessus sur les octets du document, la comparer à ce registre et exécuter le composant nommé ici sur les faits conservés.
custody-key = Clé d’API { $id }
custody-payer = { $email } (payeur)
custody-second = Seconde évaluation
custody-second-score = note { $score }, par { $component } ({ $sha256 })
custody-rewritten = Réécrit
custody-seal = Sceau
custody-seal-certificate = certificat { $sha256 } (SHA-256)
custody-unsealed = sans sceau : le document est certifié contre toute modification
custody-trusted-time = Heure certifiée
custody-stamped = { $moment }, par { $authority }
custody-stamped-unchecked = { $moment }, par { $authority } (une autorité qui n’est pas vérifiée)
custody-no-time = aucune heure certifiée : { $reason }
custody-log = Journal de tous les registres
custody-log-head = { $origin } : { $size } entrées auparavant, racine { $root }
custody-existing-signature = Signature existante { $field }
custody-signature-valid = signature valide
custody-signature-valid-stamp = horodatage valide
custody-signature-altered = le document a été modifié après la signature
custody-signature-not-verifiable = n’a pas pu être vérifiée
custody-signature-signer = par { $signer }
custody-signature-stamped = horodatée le { $moment }
custody-signature-clock = le { $moment } selon l’horloge du signataire
custody-signature-level = niveau { $level }
custody-signature-trusted = certificat de confiance
custody-signature-untrusted = certificat non fiable
custody-signature-trust-not-checked = certificat non vérifié avec des certificats racines
custody-signature-changed-content = une révision ultérieure a modifié le contenu
custody-signature-changed-annotations = une révision ultérieure a modifié des annotations
custody-signature-changed-fields = une révision ultérieure a modifié des champs du formulaire
custody-signature-part = ne couvre qu’une partie de sa révision
custody-picture = le fichier reçu est une image ({ $type }) ; SHA-256 du PDF créé à partir d’elle : { $sha256 }
custody-repaired = la structure du document a dû être réparée ; SHA-256 du document réparé : { $sha256 }
custody-sandbox = Environnement de test
custody-sandbox-note = un paiement ou une vérification d’identité a été simulé et ne prouve rien
custody-identity = Identité
custody-identity-note = un signataire est venu avec un autre navigateur que celui qui a passé la vérification d’identité
custody-final = Registre final
custody-final-note = l’original a été placé dans le coffre puis remis à un autre dépositaire
custody-final-paper = l’original a été placé dans le coffre puis remplacé par un original papier
custody-handed-over-to = Remis à
custody-purpose = Objet
custody-authorized-by = Autorisé par
custody-requested-by = Demandé par
mark-secured-party = Créancier garanti :
builder-done = Terminé
builder-undo = Annuler la dernière action
builder-preview = Aperçu
builder-save = Enregistrer
builder-new-fields = Nouveaux champs
builder-add = Ajouter un champ
builder-add-hint = Faites-en glisser un sur une page, ou appuyez dessus pour l’ajouter à la page visible.
builder-signature = Signature
builder-initials = Initiales
builder-text = Texte
builder-date = Date
builder-number = Nombre
builder-checkbox = Case à cocher
builder-select = Liste
builder-radio = Choix
builder-attachment = Fichier
builder-signed-by = Signé par
builder-add-role = Ajouter un rôle
builder-role-name = Nom du rôle
builder-role-example = Par exemple Vendeur
builder-add-role-button = Ajouter
builder-cancel = Annuler
builder-document = Document
builder-choose = Choisir un PDF
builder-selected = Champ sélectionné
builder-selected-hint = Sélectionnez un champ sur une page. Les flèches le déplacent, avec Maj elles le redimensionnent ; Suppr le supprime.
builder-edit = Modifier
builder-close = Fermer
builder-name = Nom
builder-role = Rôle
builder-required = Obligatoire
builder-fixed = Fixe : le signataire ne peut pas le modifier
builder-prefilled = Prérempli avec
builder-options = Options, une par ligne
builder-rules = Règles
builder-min = Au moins (un nombre, ou une date comme 2026-01-31, today, today+30)
builder-max = Au plus
builder-max-length = Nombre maximal de caractères
builder-pattern = Expression régulière pour tout le texte
builder-message = Message quand le texte ne correspond pas
builder-formula = Formule, par exemple [Prix] * [Taux] / 100
builder-decimals = Décimales du résultat
builder-condition = Affiché si (Champ, Champ:valeur, !Champ ou !Champ:valeur)
builder-required-if = Obligatoire si
builder-remove = Supprimer ce champ
builder-preview-as = en tant que
builder-preview-frame = Ce que verra le signataire
builder-sample-signer = Signataire exemple
builder-ended = Cette session est terminée. Ouvrez de nouveau l’éditeur.
builder-no-answer = Aucune réponse. Réessayez.
builder-page-not-shown = Une page n’a pas pu être affichée.
builder-box = { $kind } { $name }, pour { $role }, page { $page }
builder-no-room = Il n’y a plus de place sur cette page.
builder-option = Option { $number }
builder-role-exists = Ce rôle existe déjà.
builder-role-missing = Saisissez un nom.
builder-uploading = Envoi en cours…
builder-imported = Champs repris du formulaire du document : { $count }
builder-problem-needed = Il manque quelque chose, ou une valeur est trop petite.
builder-problem-too-large = Une valeur est trop grande, ou un texte est trop long.
builder-problem-kind = Une valeur n’est pas du bon type.
builder-problem-page = Le document n’a pas cette page.
builder-problem-outside = Le champ se trouve hors de sa page.
builder-problem-type = Un champ de ce nom a un autre type.
builder-problem-rule = Les champs de ce type ne peuvent pas avoir cette règle.
builder-problem-pattern = Cette expression régulière ne peut pas être utilisée.
builder-problem-condition = Cette condition est illisible.
builder-problem-formula = Cette formule est illisible.
builder-problem-unknown-field = Une règle nomme un champ qui n’existe pas.
builder-problem-circular = Une règle dépend de son propre résultat.
builder-problem-fields = Non enregistré : certains champs ont des erreurs.
builder-problem-changed = Non enregistré : le modèle a été modifié ailleurs. Ouvrez à nouveau l’éditeur.
builder-problem-file = Ce fichier ne peut pas être utilisé. Choisissez un PDF sans mot de passe.

## Console

sign-in-subject = Connexion à { $organization }
sign-in-mail = Ce lien vous connecte en tant que { $email }. Il sert une fois, jusqu’au { $until }.
sign-in-note = Si vous ne l’avez pas demandé, ignorez ce message : personne n’entre sans le lien.
sign-in-button = Se connecter
sign-in-title = Connexion
sign-in-hint = Vous recevez un lien par e-mail. Il n’y a pas de mot de passe.
sign-in-email = Adresse e-mail
sign-in-send = M’envoyer un lien
sign-in-sent-title = Consultez votre messagerie
sign-in-sent = Si quelqu’un a accès avec cette adresse, un lien est en route. Il sert une fois, pendant 15 minutes.
sign-in-as = Vous vous connectez en tant que { $email } chez { $organization }.
sign-in-over-title = Ce lien n’est plus valable
sign-in-over = Il a déjà servi, ou son délai est passé.
console-navigation = Pages
console-home = Accueil
console-envelopes = Enveloppes
console-users = Utilisateurs
console-sessions = Vos sessions
console-sign-out = Se déconnecter
console-forbidden-title = Pas pour votre rôle
console-forbidden = Votre rôle ne le permet pas, ou le formulaire est trop ancien. Revenez en arrière et rechargez la page.
console-no-envelopes = Votre rôle ne lit pas les enveloppes.
console-waiting = En attente de signatures
console-signed = Signées, pas encore au coffre
console-declined = Refusées
console-below = Au coffre sous 100
console-findings = Des documents conservés ont été modifiés
console-nothing = Rien ici.
console-all = Tout afficher
console-older = Enveloppes plus anciennes
console-search = Rechercher
console-search-hint = Nom, personne, numéro ou numéro externe
console-status = État
console-all-statuses = Tous
console-score = Note { $score }
console-people = Personnes
console-signed-at = A signé le
console-unsigned = N’a pas signé
console-checks = Contrôles de la loi : { $score } sur 100
console-stuck = Ce document est signé et n’est pas au coffre :
console-remind = Envoyer un rappel
console-reminded = Les signataires reçoivent un nouveau lien.
console-void = Annuler
console-voided = L’enveloppe est annulée.
console-reason = Motif
console-verify = Vérifier maintenant
console-verified = La preuve est valable.
console-not-verified = La preuve n’est pas valable :
console-sessions-hint = Navigateurs dans lesquels vous êtes connecté.
console-this-session = ce navigateur
console-signed-in = Connexion du
console-end-session = Terminer
console-invite = Inviter
console-invited = ne s’est pas encore connecté
console-ended = n’a plus accès
console-role = Rôle
console-change = Modifier
console-change-role = Changer le rôle
console-invite-again = Envoyer un autre lien
console-end-access = Mettre fin à l’accès
status-pending = en attente
status-uploaded = téléversée
status-preparing = en préparation
status-sent = envoyée
status-viewed = ouverte
status-completed = signée
status-vaulted = au coffre
status-vaulted-out = remise
status-declined = refusée
status-voided = annulée
status-expired = expirée
role-owner = Propriétaire
role-admin = Administration
role-sender = Envoi
role-compliance = Conformité
role-auditor = Audit
role-controller = Contrôle
role-developer = Développement
role-member = Membre
console-developers = Développement
console-audit = Qui a fait quoi
console-receivers = Destinataires des webhooks
console-keys = Clés d’API
console-active = actif
console-inactive = désactivé
console-failing = en échec depuis
console-last-used = Dernière utilisation le
console-deliveries = Livraisons
console-newer = Plus récentes
console-earlier = Précédentes
console-attempts = Tentatives
console-no-answer = pas de réponse
console-send-again = Envoyer de nouveau
console-content = Contenu
delivery-pending = en attente
delivery-delivered = livrée
delivery-failed = échouée
console-rules = Règles
console-in-force = En vigueur
console-since = depuis
console-planned = prévu pour
console-requests = Demandes de changement
console-policy = Approbations nécessaires à un changement : { $count }
console-roll-back = revenir en arrière
console-policy-change = politique des changements
console-approvals = { $given } approbations sur { $required }
console-compared = { $differing } dossiers sur { $compared } diffèrent
change-open = ouverte
change-applied = appliquée
change-refused = refusée
change-withdrawn = retirée
change-outdated = dépassée
change-expired = expirée
review-approve = approuvée
review-refuse = refusée
review-comment = remarque
console-export = Exporter en CSV
console-from = Créée à partir du
console-to = jusqu’au
