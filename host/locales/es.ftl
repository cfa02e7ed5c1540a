# Español, con tratamiento de usted.

## Common

list-separator = {", "}
moment = { $date }, { $time } ({ $zone })
amount = { $number } { $currency }
yes = Sí
no = No
reference = Referencia: { $id }

## Errors as pages

error-missing-title = Esta página no existe
error-missing = Abra de nuevo el enlace de su correo o pida uno nuevo al remitente.
error-refused-title = Este enlace no funciona
error-refused = Puede que haya caducado o que esté incompleto. Pida uno nuevo al remitente.
error-changed-title = No es posible en este momento
error-changed = El documento ha cambiado mientras tanto. Abra de nuevo el enlace de su correo.
error-incomplete-title = Falta algo
error-incomplete = Vuelva atrás e inténtelo otra vez, o abra de nuevo el enlace de su correo.
error-busy-title = Un momento, por favor
error-busy = Este enlace se ha usado muchas veces en poco tiempo. Espere un minuto e inténtelo otra vez.
error-large-title = Demasiado grande
error-large = La imagen es demasiado grande. Vuelva atrás y pruebe con una más pequeña.
error-slow-title = La conexión fue demasiado lenta
error-slow = Sus datos no llegaron a tiempo. Vuelva atrás e inténtelo otra vez.
error-unavailable-title = No disponible en este momento
error-unavailable = Su enlace es válido y los datos guardados se conservan. Inténtelo de nuevo dentro de unos minutos.
error-failed-title = Algo ha fallado
error-failed = Los datos guardados se conservan. Inténtelo de nuevo dentro de unos minutos o consulte al remitente.

## Signing form

signing-for = Para { $name }, { $role }
signing-reading-view = Vista de lectura
signing-document = Documento
signing-page = Página { $number } de { $count }
signing-page-text = Texto de la página { $number }
signing-your-fields = Sus campos
signing-title = Rellenar y firmar
signing-progress = { $done } de { $total } campos obligatorios completados
signing-problems = Revise estos campos:
signing-consent-field = Su consentimiento
signing-reason-field = Su motivo
signing-document-field = El documento
signing-required = (obligatorio)
signing-fixed = (fijo)
signing-choose = Elija…
signing-type-name = Escriba su nombre
signing-type-initials = Escriba sus iniciales
signing-your-signature = Su firma
signing-sign-again = Firmar de nuevo
signing-not-filled-in = Sin rellenar
signing-style = Estilo de la firma escrita
signing-style-casual = estilo informal
signing-style-formal = estilo formal
signing-style-light = estilo fino
signing-check = Revise sus respuestas
signing-finish = Terminar y firmar
signing-check-first = Revisar antes
signing-save = Guardar para más tarde
signing-back = Atrás
signing-next = Siguiente
signing-start = Empezar
signing-continue = Continuar
signing-skip = Omitir
signing-check-and-sign = Revisar y firmar
signing-not-answered = Sin respuesta: cuenta como No
signing-how-to-give = Cómo introducir: { $field }
signing-type = Escribir
signing-draw = Dibujar
signing-upload = Subir
signing-use-mine = Usar mi firma
signing-sign-as = Firmar como { $name }
signing-initial-as = Poner las iniciales { $name }
signing-draw-hint = Dibuje con el dedo, un lápiz o el ratón
signing-clear = Borrar
signing-drawing-area = Zona de dibujo: { $field }
signing-choose-picture = Elija una imagen PNG o JPEG de su firma
signing-picture = Imagen: { $field }
signing-picture-unreadable = Este archivo no se puede leer como imagen.
signing-saving = Guardando…
signing-saved = Guardado
signing-preview = Esto es una vista previa: no se guarda ni se firma nada.
signing-offline = Sin conexión. Sus datos se conservan aquí y se guardarán en cuanto vuelva.
signing-offline-finish = Sin conexión. Sus datos se conservan aquí; firme cuando vuelva.
signing-no-text = Esta página no tiene texto.
signing-text-failed = No se pudo cargar el texto.
mark-sign = Firmar
mark-initial = Iniciales
mark-date = Fecha
mark-fill-in = Rellenar
mark-attach = Adjuntar
attachment-add = Adjuntar
attachment-remove = Quitar
attachment-hint = Un archivo PDF, PNG o JPEG de { $limit } MB como máximo. Pasará a formar parte del documento.
attachment-files = Archivos adjuntos
attachment-failed = No se pudo enviar el archivo. Inténtelo de nuevo.

## Consent

consent-statement = Acepto firmar este documento de forma electrónica. Mi firma aquí tiene el mismo efecto que una firma en papel.
consent-about = Acerca de la firma electrónica
consent-disclosure = Puede rechazarla y pedir al remitente el documento en papel. Recibirá por correo electrónico una copia del documento firmado, que podrá leer con cualquier lector de PDF e imprimir. La hora, su dirección de internet y el nombre de su navegador se conservan junto con su firma.

## Declining

decline-summary = No quiero firmar
decline-reason = Motivo
decline-open = Rechazar…
decline-warning = Si rechaza, este documento se cierra para todas las partes y no se puede deshacer. Se comunicará su motivo al remitente.
decline-confirm = Rechazar para todas las partes

## Problems of entries

problem-required = Este campo es obligatorio
problem-unsigned = Firme aquí o en otro de sus campos de firma
problem-consent = Se necesita su consentimiento para firmar de forma electrónica
problem-document-changed = Otro firmante ha firmado desde que usted abrió el documento. Revise de nuevo las páginas
problem-reason = Indique por qué rechaza
problem-too-long = Como máximo { $limit } caracteres
problem-number = Introduzca un número
problem-date = Introduzca una fecha como año-mes-día
problem-option = Elija una de las opciones
problem-too-small = Como mínimo { $limit }
problem-too-big = Como máximo { $limit }
problem-too-early = No antes del { $limit }
problem-too-late = No después del { $limit }
problem-result-changed = El resultado ha cambiado. Compruébelo
problem-pattern = Este dato no tiene el formato esperado
problem-attachment-size = Adjunte un archivo de { $limit } MB como máximo
problem-attachments-size = Todos los archivos juntos pueden tener { $limit } MB como máximo
problem-attachment-type = Adjunte un archivo PDF, PNG o JPEG
problem-attachment-pages = Adjunte un PDF de { $limit } páginas como máximo
problem-attachment-unreadable = No se puede leer este archivo. Puede estar dañado o necesitar una contraseña
problem-picture-format = Use una imagen PNG o JPEG
problem-picture-size = Use una imagen de { $limit } KB como máximo
problem-picture-unreadable = Esta imagen no se puede leer

## Pages of a signing link

link-unknown-title = Este enlace no funciona
link-unknown = Compruebe que esté completo o pida uno nuevo al remitente.
link-expired-title = Este enlace ha caducado
link-expired = Los enlaces funcionan por tiempo limitado para proteger su documento.
link-renew = Enviarme un enlace nuevo por correo
link-mailed-title = Un correo está en camino
link-mailed = Revise su bandeja de entrada: el enlace se envió a la dirección de su invitación.
link-too-soon-title = Revise su bandeja de entrada
link-too-soon = Le enviamos un correo hace unos minutos. Revise su bandeja de entrada o inténtelo más tarde.
replaced-title = Firmante sustituido
replaced = Se ha pedido a otra persona que firme en su lugar.
incomplete-title = Falta algo
incomplete = Vuelva atrás e inténtelo otra vez.
withdrawn-title = Retirado
withdrawn = El remitente ha retirado este documento.
expired-title = Vencido
expired = El plazo para firmar este documento ha vencido.
declined-by-other-title = Rechazado
declined-by-other = Otro firmante ha rechazado este documento.
nothing-to-sign-title = Nada que firmar
nothing-to-sign = Este documento no está abierto a la firma.
closed-title = Este documento está cerrado
closed = Ya no se puede firmar.
unavailable-title = No disponible en este momento
unavailable-document = El documento no se puede mostrar ahora. Su enlace es válido: inténtelo de nuevo dentro de unos minutos.
unavailable-identity = Su identidad no se puede comprobar ahora. Su enlace es válido: inténtelo de nuevo dentro de unos minutos.
unavailable-payment = El pago no se puede hacer ahora. Su enlace es válido: inténtelo de nuevo dentro de unos minutos.
not-yet-title = Todavía no es su turno
not-yet = { $name } firma antes que usted. Recibirá un correo cuando sea su turno.
not-yet-other = Otra persona firma antes que usted. Recibirá un correo cuando sea su turno.
signed-thanks = Gracias
signed-title = Ha firmado
signed-document = Ha firmado «{ $document }».
signed-still-to-sign = Falta la firma de:
signed-copy-later = Recibirá su copia por correo electrónico cuando hayan firmado todas las partes.
signed-copy-expired = Todas las partes han firmado. Este enlace ha caducado, por lo que le enviaremos su copia por correo electrónico.
signed-mail-copy = Enviarme mi copia por correo
signed-copy-ready = Todas las partes han firmado. Descargue su copia; también se la enviamos por correo electrónico.
signed-download = Descargar su copia
signed-certificate = Descargar el certificado de finalización
certificate-name = Certificado de finalización
continue-to = Continuar en { $host }
close-page = Puede cerrar esta página.
you-declined-title = Ha rechazado firmar
you-declined = Hemos avisado al remitente.

## Payment

payment-title = Pago
payment-for = Por «{ $document }»
payment-due = Importe a pagar:
payment-pay = Pagar { $amount }
payment-other-way = El remitente cobra este pago por otra vía.
payment-needs-script = Para pagar se necesita JavaScript en su navegador.
payment-back = Volver al documento
payment-received-title = Pago recibido
payment-paid = Pagado:
payment-sandbox = Este es un entorno de pruebas para el desarrollo: no se mueve dinero.
payment-load-failed = No se pudo cargar el formulario de pago.
payment-failed = El pago no se completó.

## Identity check

identity-title = Confirme quién es
identity-before = Antes de abrir «{ $document }», el remitente quiere asegurarse de que es usted.
identity-code-title = Introduzca su código
identity-questions-title = Responda a estas preguntas
identity-wrong-title = Sus respuestas no fueron correctas
identity-wait-title = Vuelva más tarde
identity-exhausted-title = No quedan intentos
identity-busy-title = Un momento
identity-unavailable-title = No se pudo comprobar su identidad
identity-time-over = El plazo ha terminado. Puede empezar de nuevo.
identity-wrong-code = Ese código no es correcto. Le hemos enviado uno nuevo.
identity-not-accepted = Sus datos no fueron aceptados. Revíselos e inténtelo otra vez.
identity-too-many = Se pidieron demasiados códigos. Espere un rato antes de intentarlo otra vez.
identity-try-later = El servicio de identidad no respondió. Inténtelo de nuevo en un momento.
identity-first-name = Nombre
identity-last-name = Apellidos
identity-phone = Teléfono móvil
identity-birth = Fecha de nacimiento
identity-ssn = Últimas cuatro cifras de su SSN
identity-line1 = Calle y número
identity-line2 = Apartamento o piso
identity-city = Ciudad
identity-state = Estado
identity-zip = Código postal
identity-consent = Acepto que estos datos se envíen a un servicio de verificación de identidad, que consulta registros sobre mí para formular preguntas que yo pueda responder.
identity-kept = Se usan solo para esta comprobación y no se conservan aquí: solo se conservan el resultado, su hora y su dirección de internet.
identity-continue = Continuar
identity-minutes = { $minutes ->
    [one] Tiene { $minutes } minuto para hacerlo.
   *[other] Tiene { $minutes } minutos para hacerlo.
}
identity-code-sent = Se envió un código a su teléfono.
identity-code = Código
identity-send = Enviar respuestas
identity-checking = Estamos comprobando sus respuestas.
identity-look-again = Mirar de nuevo
identity-unavailable = No hay suficientes registros sobre usted para hacer preguntas. No es culpa suya y no tiene consecuencias.
identity-enter-again = Si se equivocó en sus datos, introdúzcalos de nuevo.
identity-other-way = El remitente puede ofrecer otra forma de firmar.
identity-also-other-way = El remitente también puede ofrecer otra forma de firmar.
identity-try-again = Intentar de nuevo
identity-wrong = { $left ->
    [1] Al menos una respuesta fue incorrecta. Puede intentarlo una vez más, con otras preguntas.
    [2] Al menos una respuesta fue incorrecta. Puede intentarlo dos veces más, con otras preguntas.
   *[other] Al menos una respuesta fue incorrecta. Puede intentarlo { $left } veces más, con otras preguntas.
}
identity-exhausted = Ha usado todos los intentos.
identity-wait-minutes = { $minutes ->
    [1] Puede intentarlo de nuevo dentro de un minuto.
   *[other] Puede intentarlo de nuevo dentro de { $minutes } minutos.
}
identity-wait-hours = { $hours ->
    [one] Puede intentarlo de nuevo dentro de { $hours } hora.
   *[other] Puede intentarlo de nuevo dentro de { $hours } horas.
}
identity-needed = Este dato es necesario
identity-consent-needed = Se necesita su consentimiento para continuar
identity-enter-code = Introduzca el código
identity-choose = Elija una respuesta
identity-phone-digits = Introduzca un número de teléfono solo con cifras
identity-phone-area = Introduzca su número con el prefijo
identity-enter-date = Introduzca una fecha
identity-enter-birth = Introduzca su fecha de nacimiento
identity-four-digits = Introduzca cuatro cifras
identity-five-digits = Introduzca cinco cifras
identity-two-letters = Introduzca las dos letras del estado
identity-hundred = Introduzca 100 caracteres como máximo

## Public verification page

verify-unknown-title = No existe tal registro
verify-unknown = Revise la dirección o escanee de nuevo el código del certificado.
verify-record = Registro { $id }
verify-vaulted = Firmado por todas las partes. El ejemplar original está en la bóveda.
verify-released = Firmado por todas las partes. El ejemplar original se entregó a otro custodio.
verify-paper = Firmado por todas las partes. Un original en papel ha sustituido al ejemplar original electrónico.
verify-signed = { $name }, firmado el { $moment }
verify-title = ¿Es su copia la correcta?
verify-choose = Elija su archivo. Se compara en este dispositivo y no se envía a ninguna parte.
verify-file = Archivo PDF
verify-fingerprints = Huellas digitales (SHA-256)
verify-copy = la copia para las partes
verify-authoritative = el ejemplar original
verify-comparing = Comparando…
verify-unsupported = Este navegador no puede comparar archivos. Compare las huellas de abajo con un programa como sha256sum.
verify-same = Sí: su archivo es { $name }, sin cambios.
verify-other = No: su archivo es otro o ha sido modificado. Un archivo impreso y escaneado, o guardado de nuevo por un programa, cuenta como modificado.

## Certificate of completion

certificate-sent-by = Enviado por
certificate-sent = Enviado
certificate-completed = Completado
certificate-vaulted = En la bóveda desde
certificate-reference = Referencia
certificate-signed-document = Documento firmado
certificate-authoritative = Ejemplar original
certificate-copy = Copia para las partes
certificate-opened = Abierto por primera vez
certificate-identity = Comprobación de identidad
certificate-identity-passed = preguntas de identidad respondidas, { $moment } (proveedor { $provider })
certificate-consent = Consentimiento electrónico
certificate-signed = Firmado
certificate-file = Archivo adjunto
certificate-address = Dirección de internet
certificate-browser = Navegador
certificate-caption = Escanee el código o abra la dirección para comprobar este registro y si su copia es el documento que se firmó.

## Widgets in other pages

embed-title = Un momento
embed-opening = Abriendo su documento…
embed-needs-script = Esta página necesita JavaScript. Abra en su lugar el enlace de su correo.
embed-expired-title = Esta página ha caducado
embed-expired = Vuelva a la página anterior y ábrala de nuevo.
vault-download = Descargar una copia
vault-satisfied = Cumplido.
vault-not-satisfied = No cumplido.

## Mails

mail-hello = Hola, { $name }:
mail-hello-nobody = Hola:
mail-button = { $label }:
mail-read-and-sign = Leer y firmar el documento
mail-link-note = El enlace es solo para usted y funciona durante siete días. No reenvíe este correo, por favor.
mail-deadline = Firme antes del { $moment }.
mail-others = Otros firmantes: { $signers }.
mail-other = { $name } ({ $role })
mail-other-signed = { $name } ({ $role }, ha firmado)
mail-invitation-subject = { $sender } le pide que firme: { $document }
mail-invitation = { $sender } le pide que firme «{ $document }».
mail-reminder-subject = Recordatorio: { $sender } espera su firma: { $document }
mail-reminder = { $sender } espera su firma en «{ $document }».
mail-reminder-link = Puede firmarlo con este enlace nuevo. Los enlaces anteriores pueden haber caducado.
mail-completed-subject = Completado: { $document }
mail-completed = «{ $document }» está completado: todas las partes han firmado.
mail-attached-certificate = Se adjunta el documento firmado, marcado como copia sin valor de original, y un certificado de quién firmó y cuándo.
mail-attached = Se adjunta el documento firmado, marcado como copia sin valor de original.
mail-linked = El documento firmado es demasiado grande para un correo. Puede descargar su copia durante siete días.
mail-too-large = El documento firmado es demasiado grande para un correo.
mail-declined-subject = Rechazado: { $document }
mail-declined-by = { $name } ha rechazado firmar «{ $document }».
mail-declined-reason = Motivo indicado: { $reason }
mail-declined-self = Ha rechazado firmar «{ $document }». Se ha avisado a { $sender }.
mail-declined-contact = Si usted no lo rechazó, póngase en contacto con { $sender }.
mail-declined-other = Otro firmante ha rechazado firmar «{ $document }».
mail-declined-closed = El documento está cerrado. No tiene que hacer nada.
mail-withdrawn-subject = Retirado: { $document }
mail-withdrawn = { $sender } ha retirado «{ $document }».
mail-withdrawn-closed = Sus enlaces ya no lo abren. No tiene que hacer nada.
mail-endpoint-receiver = su receptor
mail-endpoint-failing-subject = Los webhooks no llegan a { $host }
mail-endpoint-failing-since = Todos los intentos de entregar un evento a { $host } han fallado desde el { $since }.
mail-endpoint-failing-days = Todos los intentos de entregar un evento a { $host } han fallado desde hace días.
mail-endpoint-failing = Tras cinco días de fallos se desactiva el endpoint y se descartan sus entregas pendientes.
mail-endpoint-disabled-subject = Los webhooks a { $host } están desactivados
mail-endpoint-gone = El endpoint de webhooks en { $host } se ha desactivado. Respondió 410 (gone).
mail-endpoint-failed = El endpoint de webhooks en { $host } se ha desactivado. Todos los intentos fallaron durante cinco días.
mail-endpoint-disabled = A partir de ahora no se conservan eventos para él. Actívelo de nuevo cuando su receptor vuelva a funcionar; lo que se perdió se puede volver a entregar desde su registro.
mail-release-subject = { $originator } pide liberar { $document }
mail-release = { $originator } quiere entregar la copia autoritativa de { $document } a { $recipient }. Finalidad: { $purpose }
mail-release-paper = { $originator } quiere sustituir la copia autoritativa de { $document } por un original en papel para { $recipient }. Finalidad: { $purpose }
mail-release-answer = Su organización controla este registro. Sin su consentimiento la copia permanece en la bóveda. Responda con la referencia de abajo.
mail-view = { $sender } le permite consultar el contrato firmado { $document }. El enlace es válido hasta { $moment }.
mail-view-note = Cada consulta queda registrada. El enlace es solo para usted; no lo reenvíe.

## Kinds of signers

signing-for-approver = Para { $name }, { $role } (aprueba)
signing-for-witness = Para { $name }, { $role } (firma como testigo)
signing-approve = Aprobar
signing-download = Descargar para leer
consent-approval = Apruebo este documento de forma electrónica. Mi aprobación aquí tiene el mismo efecto que una aprobación en papel.
signer-approver = { $role } (aprobador)
signer-witness = { $role } (testigo)

## Another person signs

delegate-summary = Otra persona debe firmar en mi lugar
delegate-explained = Después, su propio enlace dejará de funcionar y se comunicará al remitente a quién ha designado.
delegate-name = Nombre de la persona
delegate-email = Dirección de correo electrónico de la persona
delegate-phone = Teléfono móvil de la persona, con prefijo de país
delegate-confirm = Pedírselo a esta persona
delegate-name-missing = Introduzca el nombre de la persona
delegate-email-missing = Introduzca una dirección de correo electrónico
delegate-phone-missing = Introduzca un número de móvil con su prefijo de país
delegate-own-address = Esta es su propia dirección
delegated-title = Pasado a otra persona
delegated = Se ha pedido a { $name } que firme en su lugar. No tiene que hacer nada más.

## A code before the document

code-title = Introduzca su código
code-locked = Se introdujeron demasiados códigos incorrectos.
code-locked-until = { $minutes ->
    [1] Puede intentarlo de nuevo dentro de un minuto. Si usted no introdujo los códigos, avise al remitente.
   *[other] Puede intentarlo de nuevo dentro de { $minutes } minutos. Si usted no introdujo los códigos, avise al remitente.
}
code-will-send = Enviaremos un código a { $address }.
code-sent = Hemos enviado un código a { $address }. Funciona durante diez minutos.
code-will-send-phone = Enviaremos un mensaje de texto con un código a su teléfono. El número termina en { $digits }.
code-sent-phone = Hemos enviado un mensaje de texto con un código a su teléfono. El número termina en { $digits }. El código funciona durante diez minutos.
code-passcode = Introduzca el código de acceso que le ha dado el remitente.
code-label = Código
code-passcode-label = Código de acceso
code-open = Abrir el documento
code-send = Enviarme un código
code-send-another = Enviar otro código
code-wrong = Este no es el código. Revíselo e inténtelo otra vez.
code-outdated = Este código es demasiado antiguo. Pida uno nuevo.
code-later = { $minutes ->
    [1] Puede pedir otro código dentro de un minuto.
   *[other] Puede pedir otro código dentro de { $minutes } minutos.
}
certificate-code = Código previo al documento
certificate-code-mailed = código enviado por correo electrónico, { $moment }
certificate-code-texted = código por mensaje de texto al número terminado en { $digits }, { $moment }
certificate-code-passcode = código de acceso del remitente, { $moment }

## Page for readers

reading-hint = Puede leer este documento. No tiene que firmarlo.
reading-signers = Firmantes
reading-pending = { $name }, { $role }: no lo ha abierto
reading-viewed = { $name }, { $role }: lo ha abierto
reading-signed = { $name }, { $role }: ha firmado
reading-declined = { $name }, { $role }: ha rechazado
reading-closed-title = Nada que leer
reading-closed = Este documento no está abierto.
signed-first-page = Primera página del documento firmado

## Vault widget

vault-safe-title = A salvo en la bóveda
vault-safe = { $keeper } conserva aquí el original, sin cambios desde que se firmó. Solo hay uno: cada copia indica que es una copia.
vault-handed-over-title = Entregado
vault-handed-over = El original está ahora en manos de otro custodio. Esta página conserva su historial.
vault-not-yet-title = Todavía no está en la bóveda
vault-not-yet = El original entra en la bóveda cuando todos han firmado.
vault-since = En la bóveda desde
vault-over-since = Entregado
vault-responsible = Responsable
vault-kept-for = Conservado para
vault-who-signed = Quién firmó
vault-signed-at = Firmó el { $moment }
vault-unsigned = No ha firmado
vault-what-happened = Qué ocurrió
vault-experts = Detalles para expertos
vault-record-number = Número de registro
vault-hash = SHA-256 del original
vault-checks = Se cumplen { $passed } de { $total } comprobaciones de UCC §9-105
inspect-hint = { $sender } le permite consultar este registro hasta { $moment }. Cada consulta queda registrada.
inspect-open = Abrir el registro
inspect-control = Control
inspect-controller = Controlado por
inspect-since = Desde
inspect-originator = Creado por
inspect-pledgee = Pignorado a favor de
inspect-download = Descargar una copia con marca de agua
inspect-over-title = Esta consulta ha terminado
inspect-over = Pida otro enlace a la organización que se lo envió.
copy-line = Copia para { $holder }, { $party } · { $moment } · { $purpose } · { $id }
copy-sold = Vendido { $moment }
paper-line = Original en papel de { $id } · convertido { $moment } para { $recipient } · sustituye al ejemplar electrónico con SHA-256 { $hash }
join-title = { $sender } invita a { $name }
join-hint = { $sender } quiere ceder contratos a { $name } aquí. Únase para tomar el control: { $name } recibe una organización y una clave para la API.
join-button = Unirse
join-done-title = { $name } se ha unido
join-done = { $sender } ha recibido este identificador y ya puede designarle.
join-organization = Identificador de su organización
join-key = Clave de API
join-keep = Guarde la clave en un lugar seguro: no se volverá a mostrar.
join-over-title = Esta invitación ha terminado
join-over = Se utilizó o han pasado sus siete días. Pida otra.
statement-title = Declaración de control
statement-controlled = Controlado por { $controller }
statement-still = Sigue siendo válido ahora.
statement-over = Desde entonces el control ha pasado a otra parte o el original ha salido de la bóveda.
statement-issued = A fecha de
statement-requested-by = Emitida a petición de
statement-jurisdiction = Jurisdicción
statement-pdf = Descargar en PDF
statement-json = Descargar como datos (JSON)
statement-chain = Quién tuvo el control
statement-key = Huella de la clave de firma
statement-check = Comprobar esta declaración en
statement-proof = Prueba
statement-act-stored = se guardó el contrato
statement-act-accepted = asumió el control
statement-act-transfer = asumió el control en una transferencia
statement-note = Las entradas citadas forman parte de un registro público cuya cabecera está firmada. El archivo de datos las contiene con sus pruebas; el programa holdfast-verify lo comprueba sin este servicio. La declaración se refiere al momento indicado arriba.
history-created = Se preparó el documento
history-sent = Se envió a los firmantes
history-viewed = { $name } lo abrió
history-signed = { $name } firmó
history-signer = Un firmante
history-completed = Todos han firmado
history-declined = Un firmante rechazó firmar
history-voided = El remitente lo retiró
history-expired = El plazo para firmar venció
history-stored = El original se depositó en la bóveda
history-released = El original se entregó a { $recipient }
history-paper = Un original en papel para { $recipient } sustituyó al original electrónico
history-control = { $party } asumió el control
history-recipient = otro custodio
history-tampered = Se detectó que el original guardado había sido modificado
history-changed = { $name } firma en lugar de { $previous }

## Mails about approving, witnessing, reading and codes

mail-approval-subject = { $sender } le pide su aprobación: { $document }
mail-approval = { $sender } le pide que apruebe «{ $document }».
mail-witness-subject = { $sender } le pide que firme como testigo: { $document }
mail-witness = { $sender } le pide que firme «{ $document }» como testigo.
mail-viewing-subject = { $sender } le muestra: { $document }
mail-viewing = { $sender } ha enviado «{ $document }» a sus firmantes y le permite leerlo.
mail-viewing-copy = No tiene que hacer nada. Recibirá una copia cuando hayan firmado todas las partes.
mail-read = Leer el documento
mail-code-subject = Su código: { $code }
mail-code = Su código para «{ $document }» de { $sender } es { $code }.
mail-code-use = Introdúzcalo en la página que lo pidió. Funciona una sola vez, durante { $minutes } minutos.
mail-code-note = Nadie le pedirá este código por teléfono. Si usted no lo pidió, ignore este correo.
text-invitation = { $sender } le pide que firme «{ $document }»:
text-reminder = Recordatorio: { $sender } espera su firma en «{ $document }»:
text-code = { $code } es su código para «{ $document }» de { $sender }. Funciona durante diez minutos. Nadie se lo pedirá por teléfono.
custody-title = Registro de custodia
custody-file-title = Registro de custodia de { $id }
custody-file-subject = Quién ha tenido el ejemplar original de «{ $name }», desde cuándo y cómo se comprobó
custody-unnamed = Documento sin nombre
custody-issued = Emitido por { $issuer } el { $moment }
custody-recorded = Registrado el { $moment }
custody-certificate = Certificado de las comprobaciones de control que recoge este registro
custody-not-given = no indicado
custody-envelope = Expediente
custody-customer = Cliente
custody-custodian = Custodio
custody-secured-party = Acreedor garantizado
custody-documents = Documentos
custody-algorithm = Algoritmo de hash
custody-copy = Copia sin valor de original
custody-parties = Partes
custody-party = Parte
custody-email = Correo
custody-role = Función
custody-unsigned = sin firmar
custody-checks = Comprobaciones de control
custody-requirement = Requisito
custody-reference = Referencia
custody-finding = Resultado
custody-timeline = Cadena de custodia
custody-time = Hora
custody-actor = Quién
custody-event = Qué ocurrió
custody-made = Cómo se hizo este registro
custody-rules = Componente de reglas
custody-attachment = Archivo adjunto
custody-note = El certificado adjunto es la forma de este registro que leen los programas. Quien tenga el ejemplar original puede repetir cada comprobación: calcular el hash indicado arriba sobre los bytes del documento, compararlo con este registro y ejecutar el componente aquí nombrado sobre los hechos guardados.
custody-key = Clave de API { $id }
custody-payer = { $email } (quien paga)
custody-second = Segunda evaluación
custody-second-score = puntuación { $score }, por { $component } ({ $sha256 })
custody-rewritten = Reescrito
custody-seal = Sello
custody-seal-certificate = certificado { $sha256 } (SHA-256)
custody-unsealed = sin sello: el documento está certificado contra cualquier cambio
custody-trusted-time = Hora certificada
custody-stamped = { $moment }, por { $authority }
custody-stamped-unchecked = { $moment }, por { $authority } (una autoridad que no se comprueba)
custody-no-time = sin hora certificada: { $reason }
custody-log = Registro de todos los historiales
custody-log-head = { $origin }: { $size } entradas anteriores, raíz { $root }
custody-existing-signature = Firma ya existente { $field }
custody-signature-valid = firma válida
custody-signature-valid-stamp = sello de tiempo válido
custody-signature-altered = el documento se alteró después de la firma
custody-signature-not-verifiable = no se pudo verificar
custody-signature-signer = de { $signer }
custody-signature-stamped = sello de tiempo del { $moment }
custody-signature-clock = según el reloj del firmante, el { $moment }
custody-signature-level = nivel { $level }
custody-signature-trusted = certificado de confianza
custody-signature-untrusted = certificado no fiable
custody-signature-trust-not-checked = certificado no comprobado con certificados raíz
custody-signature-changed-content = una revisión posterior cambió el contenido
custody-signature-changed-annotations = una revisión posterior cambió anotaciones
custody-signature-changed-fields = una revisión posterior cambió campos del formulario
custody-signature-part = cubre solo una parte de su revisión
custody-picture = el archivo subido es una imagen ({ $type }); SHA-256 del PDF creado a partir de ella: { $sha256 }
custody-repaired = hubo que reparar la estructura del documento; SHA-256 del documento reparado: { $sha256 }
custody-sandbox = Entorno de pruebas
custody-sandbox-note = un pago o una comprobación de identidad fue simulado y no prueba nada
custody-identity = Identidad
custody-identity-note = un firmante usó un navegador distinto del que superó la comprobación de identidad
custody-final = Registro final
custody-final-note = el original se depositó en la bóveda y se entregó a otro custodio
custody-final-paper = el original se depositó en la bóveda y se sustituyó por un original en papel
custody-handed-over-to = Entregado a
custody-purpose = Finalidad
custody-authorized-by = Autorizado por
custody-requested-by = Solicitado por
mark-secured-party = Acreedor garantizado:
builder-done = Listo
builder-undo = Deshacer
builder-preview = Vista previa
builder-save = Guardar
builder-new-fields = Campos nuevos
builder-add = Añadir un campo
builder-add-hint = Arrastre uno a una página, o púlselo para añadirlo a la página que ve.
builder-signature = Firma
builder-initials = Iniciales
builder-text = Texto
builder-date = Fecha
builder-number = Número
builder-checkbox = Casilla
builder-select = Lista
builder-radio = Opciones
builder-attachment = Archivo
builder-signed-by = Lo firma
builder-add-role = Añadir una función
builder-role-name = Nombre de la función
builder-role-example = Por ejemplo, Vendedor
builder-add-role-button = Añadir
builder-cancel = Cancelar
builder-document = Documento
builder-choose = Elegir un PDF
builder-selected = Campo seleccionado
builder-selected-hint = Seleccione un campo en una página. Las flechas lo mueven, con Mayús cambian su tamaño; Supr lo elimina.
builder-edit = Editar
builder-close = Cerrar
builder-name = Nombre
builder-role = Función
builder-required = Obligatorio
builder-fixed = Fijo: quien firma no puede cambiarlo
builder-prefilled = Valor previo
builder-options = Opciones, una en cada línea
builder-rules = Reglas
builder-min = Como mínimo (un número, o una fecha como 2026-01-31, today, today+30)
builder-max = Como máximo
builder-max-length = Número máximo de caracteres
builder-pattern = Expresión regular para todo el texto
builder-message = Mensaje cuando el texto no coincide
builder-formula = Fórmula, por ejemplo [Precio] * [Tasa] / 100
builder-decimals = Decimales del resultado
builder-condition = Se muestra si (Campo, Campo:valor, !Campo o !Campo:valor)
builder-required-if = Obligatorio si
builder-remove = Eliminar este campo
builder-preview-as = como
builder-preview-frame = Lo que verá quien firma
builder-sample-signer = Firmante de ejemplo
builder-ended = Esta sesión ha terminado. Abra el editor de nuevo.
builder-no-answer = No hubo respuesta. Inténtelo de nuevo.
builder-page-not-shown = No se pudo mostrar una página.
builder-box = { $kind } { $name }, para { $role }, página { $page }
builder-no-room = No queda espacio en esta página.
builder-option = Opción { $number }
builder-role-exists = Esta función ya existe.
builder-role-missing = Escriba un nombre.
builder-uploading = Subiendo…
builder-imported = Campos tomados del formulario del documento: { $count }
builder-problem-needed = Falta algo, o un valor es demasiado pequeño.
builder-problem-too-large = Un valor es demasiado grande, o un texto es demasiado largo.
builder-problem-kind = Un valor no es del tipo correcto.
builder-problem-page = El documento no tiene esa página.
builder-problem-outside = El campo queda fuera de su página.
builder-problem-type = Un campo con este nombre tiene otro tipo.
builder-problem-rule = Los campos de este tipo no pueden tener esta regla.
builder-problem-pattern = Esta expresión regular no se puede usar.
builder-problem-condition = Esta condición no se puede leer.
builder-problem-formula = Esta fórmula no se puede leer.
builder-problem-unknown-field = Una regla nombra un campo que no existe.
builder-problem-circular = Una regla depende de su propio resultado.
builder-problem-fields = No se guardó: algunos campos tienen errores.
builder-problem-changed = No se guardó: la plantilla se cambió en otro lugar. Abra el editor de nuevo.
builder-problem-file = Este archivo no se puede usar. Elija un PDF sin contraseña.

## Console

sign-in-subject = Iniciar sesión en { $organization }
sign-in-mail = Este enlace inicia su sesión como { $email }. Funciona una vez, hasta { $until }.
sign-in-note = Si no lo ha pedido, no haga caso de este mensaje: nadie entra sin el enlace.
sign-in-button = Iniciar sesión
sign-in-title = Iniciar sesión
sign-in-hint = Recibirá un enlace por correo electrónico. No hay contraseña.
sign-in-email = Correo electrónico
sign-in-send = Enviarme un enlace
sign-in-sent-title = Mire su correo
sign-in-sent = Si alguien tiene acceso con esta dirección, un enlace está en camino. Funciona una vez, durante 15 minutos.
sign-in-as = Inicia sesión como { $email } en { $organization }.
sign-in-over-title = Este enlace ya no vale
sign-in-over = Ya se ha usado, o su tiempo ha terminado.
console-navigation = Páginas
console-home = Inicio
console-envelopes = Sobres
console-users = Usuarios
console-sessions = Sus sesiones
console-sign-out = Cerrar sesión
console-forbidden-title = No es para su función
console-forbidden = Su función no lo permite, o el formulario es demasiado antiguo. Vuelva atrás y cargue la página de nuevo.
console-no-envelopes = Su función no lee sobres.
console-waiting = Esperan firmas
console-signed = Firmados, aún no en la bóveda
console-declined = Rechazados
console-below = En la bóveda por debajo de 100
console-findings = Se han cambiado documentos guardados
console-nothing = No hay nada aquí.
console-all = Mostrar todos
console-older = Sobres anteriores
console-search = Buscar
console-search-hint = Nombre, persona, número o número externo
console-status = Estado
console-all-statuses = Todos
console-score = Puntuación { $score }
console-people = Personas
console-signed-at = Firmó el
console-unsigned = No ha firmado
console-checks = Comprobaciones de la ley: { $score } de 100
console-stuck = Este documento está firmado y no está en la bóveda:
console-remind = Enviar un recordatorio
console-reminded = Los firmantes reciben un enlace nuevo.
console-void = Anular
console-voided = El sobre está anulado.
console-reason = Motivo
console-verify = Verificar ahora
console-verified = La prueba es válida.
console-not-verified = La prueba no es válida:
console-sessions-hint = Navegadores en los que tiene una sesión.
console-this-session = este navegador
console-signed-in = Inició sesión el
console-end-session = Terminar
console-invite = Invitar
console-invited = aún no ha iniciado sesión
console-ended = ya no tiene acceso
console-role = Función
console-change = Cambiar
console-change-role = Cambiar la función
console-invite-again = Enviar otro enlace
console-end-access = Terminar el acceso
status-pending = pendiente
status-uploaded = subido
status-preparing = en preparación
status-sent = enviado
status-viewed = abierto
status-completed = firmado
status-vaulted = en la bóveda
status-vaulted-out = entregado
status-declined = rechazado
status-voided = anulado
status-expired = caducado
role-owner = Propietario
role-admin = Administración
role-sender = Envíos
role-compliance = Cumplimiento
role-auditor = Auditoría
role-controller = Control
role-developer = Desarrollo
role-member = Miembro
console-developers = Desarrollo
console-audit = Quién hizo qué
console-receivers = Receptores de webhooks
console-keys = Claves de API
console-active = activo
console-inactive = desactivado
console-failing = falla desde
console-last-used = Último uso el
console-deliveries = Entregas
console-newer = Más nuevas
console-earlier = Anteriores
console-attempts = Intentos
console-no-answer = sin respuesta
console-send-again = Enviar otra vez
console-content = Contenido
delivery-pending = en espera
delivery-delivered = entregado
delivery-failed = fallido
console-rules = Reglas
console-in-force = En vigor
console-since = desde
console-planned = previsto para
console-requests = Solicitudes de cambio
console-policy = Aprobaciones que necesita un cambio: { $count }
console-roll-back = volver atrás
console-policy-change = política de cambios
console-approvals = { $given } de { $required } aprobaciones
console-compared = { $differing } de { $compared } registros difieren
change-open = abierta
change-applied = aplicada
change-refused = rechazada
change-withdrawn = retirada
change-outdated = superada
change-expired = caducada
review-approve = aprobada
review-refuse = rechazada
review-comment = comentario
console-export = Exportar como CSV
console-from = Creado desde
console-to = hasta
