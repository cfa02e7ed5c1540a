# Português, com tratamento formal.

## Common

list-separator = {", "}
moment = { $date }, { $time } ({ $zone })
amount = { $currency } { $number }
yes = Sim
no = Não
reference = Referência: { $id }

## Errors as pages

error-missing-title = Esta página não existe
error-missing = Abra novamente o link do seu e-mail ou peça um novo ao remetente.
error-refused-title = Este link não funciona
error-refused = Ele pode ter expirado ou estar incompleto. Peça um novo ao remetente.
error-changed-title = Isto não é possível no momento
error-changed = O documento mudou entretanto. Abra novamente o link do seu e-mail.
error-incomplete-title = Falta alguma coisa
error-incomplete = Volte e tente de novo, ou abra novamente o link do seu e-mail.
error-busy-title = Um momento, por favor
error-busy = Este link foi usado muitas vezes em pouco tempo. Aguarde um minuto e tente de novo.
error-large-title = Grande demais
error-large = A imagem é grande demais. Volte e tente uma menor.
error-slow-title = A conexão estava lenta demais
error-slow = Os seus dados não chegaram a tempo. Volte e tente de novo.
error-unavailable-title = Indisponível no momento
error-unavailable = O seu link é válido e os dados salvos são mantidos. Tente de novo em alguns minutos.
error-failed-title = Algo deu errado
error-failed = Os dados salvos são mantidos. Tente de novo em alguns minutos ou fale com o remetente.

## Signing form

signing-for = Para { $name }, { $role }
signing-reading-view = Modo de leitura
signing-document = Documento
signing-page = Página { $number } de { $count }
signing-page-text = Texto da página { $number }
signing-your-fields = Os seus campos
signing-title = Preencher e assinar
signing-progress = { $done } de { $total } campos obrigatórios preenchidos
signing-problems = Verifique estes campos:
signing-consent-field = O seu consentimento
signing-reason-field = O seu motivo
signing-document-field = O documento
signing-required = (obrigatório)
signing-fixed = (fixo)
signing-choose = Escolha…
signing-type-name = Digite o seu nome
signing-type-initials = Digite a sua rubrica
signing-your-signature = A sua assinatura
signing-sign-again = Assinar de novo
signing-not-filled-in = Não preenchido
signing-style = Estilo da assinatura digitada
signing-style-casual = estilo informal
signing-style-formal = estilo formal
signing-style-light = estilo leve
signing-check = Confira as suas respostas
signing-finish = Concluir e assinar
signing-check-first = Conferir antes
signing-save = Salvar para depois
signing-back = Voltar
signing-next = Avançar
signing-start = Começar
signing-continue = Continuar
signing-skip = Pular
signing-check-and-sign = Conferir e assinar
signing-not-answered = Sem resposta: vale como Não
signing-how-to-give = Como informar: { $field }
signing-type = Digitar
signing-draw = Desenhar
signing-upload = Enviar
signing-use-mine = Usar a minha assinatura
signing-sign-as = Assinar como { $name }
signing-initial-as = Rubricar como { $name }
signing-draw-hint = Desenhe com o dedo, a caneta ou o mouse
signing-clear = Limpar
signing-drawing-area = Área de desenho: { $field }
signing-choose-picture = Escolha uma imagem PNG ou JPEG da sua assinatura
signing-picture = Imagem: { $field }
signing-picture-unreadable = Este arquivo não pode ser lido como imagem.
signing-saving = Salvando…
signing-saved = Salvo
signing-preview = Esta é uma pré-visualização: nada é guardado nem assinado.
signing-offline = Sem conexão. Os seus dados ficam guardados aqui e serão salvos assim que ela voltar.
signing-offline-finish = Sem conexão. Os seus dados ficam guardados aqui; assine quando ela voltar.
signing-no-text = Esta página não tem texto.
signing-text-failed = Não foi possível carregar o texto.
mark-sign = Assinar
mark-initial = Rubricar
mark-date = Data
mark-fill-in = Preencher
mark-attach = Anexar
attachment-add = Anexar
attachment-remove = Remover
attachment-hint = Um arquivo PDF, PNG ou JPEG de no máximo { $limit } MB. Ele passará a fazer parte do documento.
attachment-files = Arquivos anexados
attachment-failed = Não foi possível enviar o arquivo. Tente de novo.

## Consent

consent-statement = Concordo em assinar este documento eletronicamente. A minha assinatura aqui tem o mesmo efeito que uma assinatura em papel.
consent-about = Sobre assinaturas eletrônicas
consent-disclosure = É possível recusar e pedir o documento em papel ao remetente. O documento assinado será enviado por e-mail em uma cópia que pode ser lida com qualquer leitor de PDF e impressa. A hora, o seu endereço de internet e o nome do seu navegador são mantidos com a sua assinatura.

## Declining

decline-summary = Não quero assinar
decline-reason = Motivo
decline-open = Recusar…
decline-warning = A recusa encerra este documento para todas as partes e não pode ser desfeita. O seu motivo é informado ao remetente.
decline-confirm = Recusar para todas as partes

## Problems of entries

problem-required = Este campo é obrigatório
problem-unsigned = Assine aqui ou em outro dos seus campos de assinatura
problem-consent = É necessário o seu consentimento para assinar eletronicamente
problem-document-changed = Outro signatário assinou depois que o documento foi aberto. Veja as páginas novamente
problem-reason = Informe por que recusa
problem-too-long = No máximo { $limit } caracteres
problem-number = Digite um número
problem-date = Digite uma data como ano-mês-dia
problem-option = Escolha uma das opções
problem-too-small = No mínimo { $limit }
problem-too-big = No máximo { $limit }
problem-too-early = Não antes de { $limit }
problem-too-late = Não depois de { $limit }
problem-result-changed = O resultado mudou. Confira-o
problem-pattern = Esta resposta não tem o formato esperado
problem-attachment-size = Anexe um arquivo de no máximo { $limit } MB
problem-attachments-size = Todos os arquivos juntos podem ter no máximo { $limit } MB
problem-attachment-type = Anexe um arquivo PDF, PNG ou JPEG
problem-attachment-pages = Anexe um PDF de no máximo { $limit } páginas
problem-attachment-unreadable = Não é possível ler este arquivo. Ele pode estar danificado ou precisar de uma senha
problem-picture-format = Use uma imagem PNG ou JPEG
problem-picture-size = Use uma imagem de no máximo { $limit } KB
problem-picture-unreadable = Esta imagem não pode ser lida

## Pages of a signing link

link-unknown-title = Este link não funciona
link-unknown = Verifique se ele está completo ou peça um novo ao remetente.
link-expired-title = Este link expirou
link-expired = Os links funcionam por tempo limitado, para proteger o seu documento.
link-renew = Enviar-me um novo link por e-mail
link-mailed-title = Um e-mail está a caminho
link-mailed = Verifique a sua caixa de entrada: o link foi enviado para o endereço do seu convite.
link-too-soon-title = Verifique a sua caixa de entrada
link-too-soon = Enviamos um e-mail há poucos minutos. Verifique a sua caixa de entrada ou tente mais tarde.
replaced-title = Signatário substituído
replaced = Outra pessoa foi convidada a assinar em seu lugar.
incomplete-title = Falta alguma coisa
incomplete = Volte e tente de novo.
withdrawn-title = Retirado
withdrawn = O remetente retirou este documento.
expired-title = Vencido
expired = O prazo para assinar este documento terminou.
declined-by-other-title = Recusado
declined-by-other = Outro signatário recusou este documento.
nothing-to-sign-title = Nada a assinar
nothing-to-sign = Este documento não está aberto para assinatura.
closed-title = Este documento está encerrado
closed = Não é mais possível assiná-lo.
unavailable-title = Indisponível no momento
unavailable-document = O documento não pode ser mostrado agora. O seu link é válido: tente de novo em alguns minutos.
unavailable-identity = A sua identidade não pode ser verificada agora. O seu link é válido: tente de novo em alguns minutos.
unavailable-payment = O pagamento não pode ser feito agora. O seu link é válido: tente de novo em alguns minutos.
not-yet-title = Ainda não é a sua vez
not-yet = A assinatura de { $name } vem antes da sua. Um e-mail será enviado quando for a sua vez.
not-yet-other = A assinatura de outra pessoa vem antes da sua. Um e-mail será enviado quando for a sua vez.
signed-thanks = Agradecemos
signed-title = A sua assinatura foi registrada
signed-document = “{ $document }” tem agora a sua assinatura.
signed-still-to-sign = Ainda faltam assinar:
signed-copy-later = A sua cópia será enviada por e-mail quando todas as partes tiverem assinado.
signed-copy-expired = Todas as partes assinaram. Este link expirou, por isso enviaremos a sua cópia por e-mail.
signed-mail-copy = Enviar-me a minha cópia por e-mail
signed-copy-ready = Todas as partes assinaram. Baixe a sua cópia; também a enviamos por e-mail.
signed-download = Baixar a sua cópia
signed-certificate = Baixar o certificado de conclusão
certificate-name = Certificado de conclusão
continue-to = Continuar em { $host }
close-page = Pode fechar esta página.
you-declined-title = A sua recusa foi registrada
you-declined = Avisamos o remetente.

## Payment

payment-title = Pagamento
payment-for = Por “{ $document }”
payment-due = Valor devido:
payment-pay = Pagar { $amount }
payment-other-way = O remetente recebe este pagamento por outro meio.
payment-needs-script = O pagamento precisa de JavaScript no seu navegador.
payment-back = Voltar ao documento
payment-received-title = Pagamento recebido
payment-paid = Pago:
payment-sandbox = Este é um ambiente de testes para desenvolvimento: nenhum dinheiro é movimentado.
payment-load-failed = Não foi possível carregar o formulário de pagamento.
payment-failed = O pagamento não foi concluído.

## Identity check

identity-title = Confirme a sua identidade
identity-before = Antes de abrir “{ $document }”, o remetente precisa ter certeza da sua identidade.
identity-code-title = Digite o seu código
identity-questions-title = Responda a estas perguntas
identity-wrong-title = As suas respostas não estavam corretas
identity-wait-title = Volte mais tarde
identity-exhausted-title = Não há mais tentativas
identity-busy-title = Um momento
identity-unavailable-title = Não foi possível verificar a sua identidade
identity-time-over = O prazo terminou. É possível começar de novo.
identity-wrong-code = Esse código não está correto. Enviamos um novo.
identity-not-accepted = Os seus dados não foram aceitos. Confira-os e tente de novo.
identity-too-many = Foram pedidos códigos demais. Aguarde um pouco antes de tentar de novo.
identity-try-later = O serviço de identidade não respondeu. Tente de novo em um momento.
identity-first-name = Nome
identity-last-name = Sobrenome
identity-phone = Telefone celular
identity-birth = Data de nascimento
identity-ssn = Quatro últimos dígitos do seu SSN
identity-line1 = Rua e número
identity-line2 = Apartamento ou complemento
identity-city = Cidade
identity-state = Estado
identity-zip = Código postal
identity-consent = Concordo que estes dados sejam enviados a um serviço de verificação de identidade, que consulta registros sobre mim para formular perguntas que eu possa responder.
identity-kept = Eles são usados somente para esta verificação e não são mantidos aqui: apenas o resultado, a hora e o seu endereço de internet são mantidos.
identity-continue = Continuar
identity-minutes = { $minutes ->
    [one] O prazo é de { $minutes } minuto.
   *[other] O prazo é de { $minutes } minutos.
}
identity-code-sent = Um código foi enviado ao seu telefone.
identity-code = Código
identity-send = Enviar respostas
identity-checking = Estamos verificando as suas respostas.
identity-look-again = Ver de novo
identity-unavailable = Não há registros suficientes a seu respeito para fazer perguntas. A culpa não é sua e não há consequências.
identity-enter-again = Se houve um erro nos seus dados, digite-os de novo.
identity-other-way = O remetente pode oferecer outra forma de assinar.
identity-also-other-way = O remetente também pode oferecer outra forma de assinar.
identity-try-again = Tentar de novo
identity-wrong = { $left ->
    [1] Pelo menos uma resposta estava errada. É possível tentar mais uma vez, com outras perguntas.
    [2] Pelo menos uma resposta estava errada. É possível tentar mais duas vezes, com outras perguntas.
   *[other] Pelo menos uma resposta estava errada. É possível tentar mais { $left } vezes, com outras perguntas.
}
identity-exhausted = Todas as tentativas foram usadas.
identity-wait-minutes = { $minutes ->
    [1] Tente de novo em um minuto.
   *[other] Tente de novo em { $minutes } minutos.
}
identity-wait-hours = { $hours ->
    [one] Tente de novo em { $hours } hora.
   *[other] Tente de novo em { $hours } horas.
}
identity-needed = Este dado é necessário
identity-consent-needed = O seu consentimento é necessário para continuar
identity-enter-code = Digite o código
identity-choose = Escolha uma resposta
identity-phone-digits = Digite um número de telefone somente com dígitos
identity-phone-area = Digite o seu número com o código de área
identity-enter-date = Digite uma data
identity-enter-birth = Digite a sua data de nascimento
identity-four-digits = Digite quatro dígitos
identity-five-digits = Digite cinco dígitos
identity-two-letters = Digite as duas letras do estado
identity-hundred = Digite no máximo 100 caracteres

## Public verification page

verify-unknown-title = Não existe tal registro
verify-unknown = Verifique o endereço ou leia novamente o código do certificado.
verify-record = Registro { $id }
verify-vaulted = Assinado por todas as partes. A via original está no cofre.
verify-released = Assinado por todas as partes. A via original foi entregue a outro depositário.
verify-paper = Assinado por todas as partes. Um original em papel substituiu a via original.
verify-signed = { $name }, assinado em { $moment }
verify-title = A sua cópia é a certa?
verify-choose = Escolha o seu arquivo. Ele é comparado neste dispositivo e não é enviado a lugar nenhum.
verify-file = Arquivo PDF
verify-fingerprints = Impressões digitais (SHA-256)
verify-copy = a cópia para as partes
verify-authoritative = a via original
verify-comparing = Comparando…
verify-unsupported = Este navegador não consegue comparar arquivos. Compare as impressões digitais abaixo com um programa como o sha256sum.
verify-same = Sim: o seu arquivo é { $name }, sem alterações.
verify-other = Não: o seu arquivo é outro ou foi alterado. Um arquivo impresso e digitalizado, ou salvo novamente por um programa, conta como alterado.

## Certificate of completion

certificate-sent-by = Enviado por
certificate-sent = Enviado
certificate-completed = Concluído
certificate-vaulted = No cofre desde
certificate-reference = Referência
certificate-signed-document = Documento assinado
certificate-authoritative = Via original
certificate-copy = Cópia para as partes
certificate-opened = Aberto pela primeira vez
certificate-identity = Verificação de identidade
certificate-identity-passed = perguntas de identidade respondidas, { $moment } (provedor { $provider })
certificate-consent = Consentimento eletrônico
certificate-signed = Assinado
certificate-file = Arquivo anexado
certificate-address = Endereço de internet
certificate-browser = Navegador
certificate-caption = Leia o código ou abra o endereço para verificar este registro e se a sua cópia é o documento que foi assinado.

## Widgets in other pages

embed-title = Um momento
embed-opening = Abrindo o seu documento…
embed-needs-script = Esta página precisa de JavaScript. Abra o link do seu e-mail.
embed-expired-title = Esta página expirou
embed-expired = Volte à página anterior e abra-a novamente.
vault-download = Baixar uma cópia
vault-satisfied = Cumprido.
vault-not-satisfied = Não cumprido.

## Mails

mail-hello = Olá, { $name },
mail-hello-nobody = Olá,
mail-button = { $label }:
mail-read-and-sign = Ler e assinar o documento
mail-link-note = O link é somente para o destinatário deste e-mail e funciona por sete dias. Por favor, não encaminhe este e-mail.
mail-deadline = Por favor, assine até { $moment }.
mail-others = Outros signatários: { $signers }.
mail-other = { $name } ({ $role })
mail-other-signed = { $name } ({ $role }, já assinou)
mail-invitation-subject = { $sender } solicita a sua assinatura: { $document }
mail-invitation = { $sender } solicita a sua assinatura em “{ $document }”.
mail-reminder-subject = Lembrete: { $sender } aguarda a sua assinatura: { $document }
mail-reminder = { $sender } aguarda a sua assinatura em “{ $document }”.
mail-reminder-link = É possível assinar com este novo link. Os links anteriores podem ter expirado.
mail-completed-subject = Concluído: { $document }
mail-completed = “{ $document }” está concluído: todas as partes assinaram.
mail-attached-certificate = O documento assinado está anexo, marcado como cópia sem valor de original, com um certificado de quem assinou e quando.
mail-attached = O documento assinado está anexo, marcado como cópia sem valor de original.
mail-linked = O documento assinado é grande demais para um e-mail. É possível baixar a sua cópia durante sete dias.
mail-too-large = O documento assinado é grande demais para um e-mail.
mail-declined-subject = Recusado: { $document }
mail-declined-by = { $name } recusou-se a assinar “{ $document }”.
mail-declined-reason = Motivo informado: { $reason }
mail-declined-self = A sua recusa de assinar “{ $document }” foi registrada. { $sender } recebeu um aviso.
mail-declined-contact = Se a recusa não foi sua, entre em contato com { $sender }.
mail-declined-other = Outro signatário recusou-se a assinar “{ $document }”.
mail-declined-closed = O documento está encerrado. Não é preciso fazer nada.
mail-withdrawn-subject = Retirado: { $document }
mail-withdrawn = { $sender } retirou “{ $document }”.
mail-withdrawn-closed = Os seus links não o abrem mais. Não é preciso fazer nada.
mail-endpoint-receiver = o seu receptor
mail-endpoint-failing-subject = Os webhooks não chegam a { $host }
mail-endpoint-failing-since = Todas as tentativas de entregar um evento a { $host } falharam desde { $since }.
mail-endpoint-failing-days = Todas as tentativas de entregar um evento a { $host } falham há dias.
mail-endpoint-failing = Após cinco dias de falhas, o endpoint é desativado e as suas entregas pendentes são descartadas.
mail-endpoint-disabled-subject = Os webhooks para { $host } estão desativados
mail-endpoint-gone = O endpoint de webhooks em { $host } foi desativado. Ele respondeu 410 (gone).
mail-endpoint-failed = O endpoint de webhooks em { $host } foi desativado. Todas as tentativas falharam durante cinco dias.
mail-endpoint-disabled = A partir de agora, os eventos não são mais guardados para ele. Ative-o novamente quando o seu receptor voltar; o que foi perdido pode ser entregue de novo a partir do registro.
mail-release-subject = { $originator } pede a liberação de { $document }
mail-release = { $originator } quer entregar a cópia autoritativa de { $document } a { $recipient }. Finalidade: { $purpose }
mail-release-paper = { $originator } quer substituir a cópia autoritativa de { $document } por um original em papel para { $recipient }. Finalidade: { $purpose }
mail-release-answer = A sua organização controla este registro. Sem o seu consentimento, a cópia permanece no cofre. Responda com a referência abaixo.
mail-view = { $sender } permite que você consulte o contrato assinado { $document }. O link vale até { $moment }.
mail-view-note = Cada consulta fica registrada. O link é só para você; não o encaminhe.

## Kinds of signers

signing-for-approver = Para { $name }, { $role } (aprova)
signing-for-witness = Para { $name }, { $role } (assina como testemunha)
signing-approve = Aprovar
signing-download = Baixar para ler
consent-approval = Aprovo este documento eletronicamente. A minha aprovação aqui tem o mesmo efeito que uma aprovação em papel.
signer-approver = { $role } (aprovador)
signer-witness = { $role } (testemunha)

## Another person signs

delegate-summary = Outra pessoa deve assinar em meu lugar
delegate-explained = Depois disso, o seu próprio link deixa de funcionar e o remetente é informado de quem foi indicado.
delegate-name = Nome da pessoa
delegate-email = Endereço de e-mail da pessoa
delegate-phone = Telefone celular da pessoa, com código do país
delegate-confirm = Pedir a esta pessoa
delegate-name-missing = Digite o nome da pessoa
delegate-email-missing = Digite um endereço de e-mail
delegate-phone-missing = Digite um número de celular com o código do país
delegate-own-address = Este é o seu próprio endereço
delegated-title = Repassado
delegated = Pedimos a { $name } que assine em seu lugar. Não é preciso fazer mais nada.

## A code before the document

code-title = Digite o seu código
code-locked = Foram digitados códigos errados demais.
code-locked-until = { $minutes ->
    [1] Tente de novo em um minuto. Se as tentativas não foram suas, avise o remetente.
   *[other] Tente de novo em { $minutes } minutos. Se as tentativas não foram suas, avise o remetente.
}
code-will-send = Enviaremos um código para { $address }.
code-sent = Enviamos um código para { $address }. Ele funciona por dez minutos.
code-will-send-phone = Enviaremos uma mensagem de texto com um código para o seu telefone. O número termina em { $digits }.
code-sent-phone = Enviamos uma mensagem de texto com um código para o seu telefone. O número termina em { $digits }. O código funciona por dez minutos.
code-passcode = Digite o código de acesso fornecido pelo remetente.
code-label = Código
code-passcode-label = Código de acesso
code-open = Abrir o documento
code-send = Enviar-me um código
code-send-another = Enviar outro código
code-wrong = Este não é o código. Confira-o e tente de novo.
code-outdated = Este código é antigo demais. Peça um novo.
code-later = { $minutes ->
    [1] É possível pedir outro código em um minuto.
   *[other] É possível pedir outro código em { $minutes } minutos.
}
certificate-code = Código antes do documento
certificate-code-mailed = código enviado por e-mail, { $moment }
certificate-code-texted = código por mensagem de texto ao número terminado em { $digits }, { $moment }
certificate-code-passcode = código de acesso do remetente, { $moment }

## Page for readers

reading-hint = É possível ler este documento. Não é preciso assiná-lo.
reading-signers = Signatários
reading-pending = { $name }, { $role }: não o abriu
reading-viewed = { $name }, { $role }: já o abriu
reading-signed = { $name }, { $role }: já assinou
reading-declined = { $name }, { $role }: recusou
reading-closed-title = Nada para ler
reading-closed = Este documento não está aberto.
signed-first-page = Primeira página do documento assinado

## Vault widget

vault-safe-title = Em segurança no cofre
vault-safe = { $keeper } guarda aqui o original, inalterado desde que foi assinado. Há somente um: cada cópia indica que é uma cópia.
vault-handed-over-title = Entregue
vault-handed-over = O original está agora com outro depositário. Esta página mantém o seu histórico.
vault-not-yet-title = Ainda não está no cofre
vault-not-yet = O original entra no cofre depois que todos tiverem assinado.
vault-since = No cofre desde
vault-over-since = Entregue
vault-responsible = Responsável
vault-kept-for = Guardado para
vault-who-signed = Quem assinou
vault-signed-at = Assinou em { $moment }
vault-unsigned = Não assinou
vault-what-happened = O que aconteceu
vault-experts = Detalhes para especialistas
vault-record-number = Número do registro
vault-hash = SHA-256 do original
vault-checks = { $passed } de { $total } verificações de UCC §9-105 cumpridas
inspect-hint = { $sender } permite que você consulte este registro até { $moment }. Cada consulta fica registrada.
inspect-open = Abrir o registro
inspect-control = Controle
inspect-controller = Controlado por
inspect-since = Desde
inspect-originator = Criado por
inspect-pledgee = Empenhado a favor de
inspect-download = Baixar uma cópia com marca-d’água
inspect-over-title = Esta consulta terminou
inspect-over = Peça outro link à organização que o enviou.
copy-line = Cópia para { $holder }, { $party } · { $moment } · { $purpose } · { $id }
copy-sold = Vendido { $moment }
paper-line = Original em papel de { $id } · convertido { $moment } para { $recipient } · substitui a via eletrónica com SHA-256 { $hash }
join-title = { $sender } convida { $name }
join-hint = { $sender } quer ceder contratos a { $name } aqui. Participe para assumir o controle: { $name } recebe uma organização e uma chave para a API.
join-button = Participar
join-done-title = { $name } agora participa
join-done = { $sender } recebeu este identificador e já pode designar você.
join-organization = Identificador da sua organização
join-key = Chave de API
join-keep = Guarde a chave em um lugar seguro: ela não será mostrada de novo.
join-over-title = Este convite terminou
join-over = Ele foi usado ou seus sete dias passaram. Peça outro.
statement-title = Declaração de controle
statement-controlled = Controlado por { $controller }
statement-still = Isto continua válido agora.
statement-over = Desde então o controle passou a outra parte ou o original saiu do cofre.
statement-issued = Em
statement-requested-by = Emitida a pedido de
statement-jurisdiction = Jurisdição
statement-pdf = Baixar em PDF
statement-json = Baixar como dados (JSON)
statement-chain = Quem teve o controle
statement-key = Impressão digital da chave de assinatura
statement-check = Verificar esta declaração em
statement-proof = Prova
statement-act-stored = o contrato foi guardado
statement-act-accepted = assumiu o controle
statement-act-transfer = assumiu o controle em uma transferência
statement-note = As entradas citadas fazem parte de um registro público cujo topo é assinado. O arquivo de dados as contém com suas provas; o programa holdfast-verify o verifica sem este serviço. A declaração se refere ao momento indicado acima.
history-created = O documento foi preparado
history-sent = Ele foi enviado aos signatários
history-viewed = { $name } abriu o documento
history-signed = { $name } assinou
history-signer = Um signatário
history-completed = Todos assinaram
history-declined = Um signatário recusou
history-voided = O remetente o retirou
history-expired = O prazo para assinar terminou
history-stored = O original foi colocado no cofre
history-released = O original foi entregue a { $recipient }
history-paper = Um original em papel para { $recipient } substituiu o original eletrónico
history-control = { $party } assumiu o controle
history-recipient = outro depositário
history-tampered = Constatou-se que o original guardado foi alterado
history-changed = { $name } assina no lugar de { $previous }

## Mails about approving, witnessing, reading and codes

mail-approval-subject = { $sender } solicita a sua aprovação: { $document }
mail-approval = { $sender } solicita a sua aprovação de “{ $document }”.
mail-witness-subject = { $sender } solicita a sua assinatura como testemunha: { $document }
mail-witness = { $sender } solicita a sua assinatura como testemunha em “{ $document }”.
mail-viewing-subject = { $sender } mostra-lhe: { $document }
mail-viewing = { $sender } enviou “{ $document }” aos signatários e lhe permite ler o documento.
mail-viewing-copy = Não é preciso fazer nada. Uma cópia será enviada quando todas as partes tiverem assinado.
mail-read = Ler o documento
mail-code-subject = O seu código: { $code }
mail-code = O seu código para “{ $document }” de { $sender } é { $code }.
mail-code-use = Digite-o na página que o pediu. Ele funciona uma única vez, por { $minutes } minutos.
mail-code-note = Ninguém pedirá este código por telefone. Se o pedido não foi seu, ignore este e-mail.
text-invitation = { $sender } pede a sua assinatura em “{ $document }”:
text-reminder = Lembrete: { $sender } aguarda a sua assinatura em “{ $document }”:
text-code = { $code } é o seu código para “{ $document }” de { $sender }. Ele funciona por dez minutos. Ninguém o pedirá por telefone.
custody-title = Registro de custódia
custody-file-title = Registro de custódia de { $id }
custody-file-subject = Quem teve a via original de “{ $name }”, desde quando e como isso foi verificado
custody-unnamed = Documento sem nome
custody-issued = Emitido por { $issuer } em { $moment }
custody-recorded = Registrado em { $moment }
custody-certificate = Certificado das verificações de controle relatadas neste registro
custody-not-given = não informado
custody-envelope = Processo
custody-customer = Cliente
custody-custodian = Depositário
custody-secured-party = Credor garantido
custody-documents = Documentos
custody-algorithm = Algoritmo de hash
custody-copy = Cópia sem valor de original
custody-parties = Partes
custody-party = Parte
custody-email = E-mail
custody-role = Função
custody-unsigned = não assinado
custody-checks = Verificações de controle
custody-requirement = Requisito
custody-reference = Referência
custody-finding = Resultado
custody-timeline = Cadeia de custódia
custody-time = Hora
custody-actor = Quem
custody-event = O que ocorreu
custody-made = Como este registro foi feito
custody-rules = Componente de regras
custody-attachment = Anexo
custody-note = O certificado anexo é a forma deste registro lida por programas. Quem tem a via original pode repetir cada verificação: calcular o hash indicado acima sobre os bytes do documento, compará-lo com este registro e executar o componente aqui nomeado sobre os fatos guardados.
custody-key = Chave de API { $id }
custody-payer = { $email } (pagador)
custody-second = Segunda avaliação
custody-second-score = nota { $score }, por { $component } ({ $sha256 })
custody-rewritten = Reescrito
custody-seal = Selo
custody-seal-certificate = certificado { $sha256 } (SHA-256)
custody-unsealed = sem selo: o documento está certificado contra qualquer alteração
custody-trusted-time = Hora certificada
custody-stamped = { $moment }, por { $authority }
custody-stamped-unchecked = { $moment }, por { $authority } (uma autoridade que não é verificada)
custody-no-time = sem hora certificada: { $reason }
custody-log = Registro de todos os históricos
custody-log-head = { $origin }: { $size } entradas antes, raiz { $root }
custody-existing-signature = Assinatura já existente { $field }
custody-signature-valid = assinatura válida
custody-signature-valid-stamp = carimbo do tempo válido
custody-signature-altered = o documento foi alterado depois da assinatura
custody-signature-not-verifiable = não foi possível verificar
custody-signature-signer = de { $signer }
custody-signature-stamped = carimbo do tempo de { $moment }
custody-signature-clock = pelo relógio do signatário, em { $moment }
custody-signature-level = nível { $level }
custody-signature-trusted = certificado confiável
custody-signature-untrusted = certificado não confiável
custody-signature-trust-not-checked = certificado não verificado com certificados raiz
custody-signature-changed-content = uma revisão posterior alterou o conteúdo
custody-signature-changed-annotations = uma revisão posterior alterou anotações
custody-signature-changed-fields = uma revisão posterior alterou campos do formulário
custody-signature-part = cobre apenas uma parte da sua revisão
custody-picture = o arquivo enviado é uma imagem ({ $type }); SHA-256 do PDF criado a partir dela: { $sha256 }
custody-repaired = a estrutura do documento teve de ser reparada; SHA-256 do documento reparado: { $sha256 }
custody-sandbox = Ambiente de testes
custody-sandbox-note = um pagamento ou uma verificação de identidade foi simulado e não prova nada
custody-identity = Identidade
custody-identity-note = um signatário usou um navegador diferente daquele que passou na verificação de identidade
custody-final = Registro final
custody-final-note = o original foi colocado no cofre e entregue a outro depositário
custody-final-paper = o original foi colocado no cofre e substituído por um original em papel
custody-handed-over-to = Entregue a
custody-purpose = Finalidade
custody-authorized-by = Autorizado por
custody-requested-by = Solicitado por
mark-secured-party = Credor garantido:
builder-done = Pronto
builder-undo = Desfazer
builder-preview = Pré-visualizar
builder-save = Salvar
builder-new-fields = Novos campos
builder-add = Adicionar um campo
builder-add-hint = Arraste um para uma página, ou pressione-o para adicioná-lo à página visível.
builder-signature = Assinatura
builder-initials = Iniciais
builder-text = Texto
builder-date = Data
builder-number = Número
builder-checkbox = Caixa de seleção
builder-select = Lista
builder-radio = Opções
builder-attachment = Arquivo
builder-signed-by = Assinado por
builder-add-role = Adicionar uma função
builder-role-name = Nome da função
builder-role-example = Por exemplo, Vendedor
builder-add-role-button = Adicionar
builder-cancel = Cancelar
builder-document = Documento
builder-choose = Escolher um PDF
builder-selected = Campo selecionado
builder-selected-hint = Selecione um campo em uma página. As setas o movem, com Shift mudam o tamanho; Delete o remove.
builder-edit = Editar
builder-close = Fechar
builder-name = Nome
builder-role = Função
builder-required = Obrigatório
builder-fixed = Fixo: quem assina não pode alterá-lo
builder-prefilled = Preenchido com
builder-options = Opções, uma em cada linha
builder-rules = Regras
builder-min = No mínimo (um número, ou uma data como 2026-01-31, today, today+30)
builder-max = No máximo
builder-max-length = Número máximo de caracteres
builder-pattern = Expressão regular para todo o texto
builder-message = Mensagem quando o texto não corresponde
builder-formula = Fórmula, por exemplo [Preço] * [Taxa] / 100
builder-decimals = Casas decimais do resultado
builder-condition = Mostrado se (Campo, Campo:valor, !Campo ou !Campo:valor)
builder-required-if = Obrigatório se
builder-remove = Remover este campo
builder-preview-as = como
builder-preview-frame = O que quem assina verá
builder-sample-signer = Signatário de exemplo
builder-ended = Esta sessão terminou. Abra o editor de novo.
builder-no-answer = Não houve resposta. Tente de novo.
builder-page-not-shown = Não foi possível mostrar uma página.
builder-box = { $kind } { $name }, para { $role }, página { $page }
builder-no-room = Não há mais espaço nesta página.
builder-option = Opção { $number }
builder-role-exists = Esta função já existe.
builder-role-missing = Digite um nome.
builder-uploading = Enviando…
builder-imported = Campos obtidos do formulário do documento: { $count }
builder-problem-needed = Falta algo, ou um valor é pequeno demais.
builder-problem-too-large = Um valor é grande demais, ou um texto é longo demais.
builder-problem-kind = Um valor não é do tipo certo.
builder-problem-page = O documento não tem essa página.
builder-problem-outside = O campo está fora da sua página.
builder-problem-type = Um campo com este nome tem outro tipo.
builder-problem-rule = Campos deste tipo não podem ter esta regra.
builder-problem-pattern = Esta expressão regular não pode ser usada.
builder-problem-condition = Esta condição não pode ser lida.
builder-problem-formula = Esta fórmula não pode ser lida.
builder-problem-unknown-field = Uma regra cita um campo que não existe.
builder-problem-circular = Uma regra depende do seu próprio resultado.
builder-problem-fields = Não foi salvo: alguns campos têm erros.
builder-problem-changed = Não foi salvo: o modelo foi alterado em outro lugar. Abra o editor de novo.
builder-problem-file = Este arquivo não pode ser usado. Escolha um PDF sem senha.

## Console

sign-in-subject = Entrar em { $organization }
sign-in-mail = Este link inicia a sua sessão como { $email }. Funciona uma vez, até { $until }.
sign-in-note = Se não o pediu, ignore esta mensagem: ninguém entra sem o link.
sign-in-button = Entrar
sign-in-title = Entrar
sign-in-hint = Recebe um link por e-mail. Não há senha.
sign-in-email = E-mail
sign-in-send = Enviar-me um link
sign-in-sent-title = Veja o seu e-mail
sign-in-sent = Se alguém tem acesso com este endereço, um link está a caminho. Funciona uma vez, durante 15 minutos.
sign-in-as = Entra como { $email } em { $organization }.
sign-in-over-title = Este link já não vale
sign-in-over = Já foi usado, ou o seu tempo acabou.
console-navigation = Páginas
console-home = Início
console-envelopes = Envelopes
console-users = Usuários
console-sessions = As suas sessões
console-sign-out = Sair
console-forbidden-title = Não é para a sua função
console-forbidden = A sua função não o permite, ou o formulário é demasiado antigo. Volte atrás e carregue a página de novo.
console-no-envelopes = A sua função não lê envelopes.
console-waiting = À espera de assinaturas
console-signed = Assinados, ainda não no cofre
console-declined = Recusados
console-below = No cofre abaixo de 100
console-findings = Documentos guardados foram alterados
console-nothing = Nada aqui.
console-all = Mostrar todos
console-older = Envelopes mais antigos
console-search = Procurar
console-search-hint = Nome, pessoa, número ou número externo
console-status = Estado
console-all-statuses = Todos
console-score = Pontuação { $score }
console-people = Pessoas
console-signed-at = Assinou em
console-unsigned = Não assinou
console-checks = Verificações da lei: { $score } de 100
console-stuck = Este documento está assinado e não está no cofre:
console-remind = Enviar um lembrete
console-reminded = Os signatários recebem um link novo.
console-void = Anular
console-voided = O envelope está anulado.
console-reason = Motivo
console-verify = Verificar agora
console-verified = A prova é válida.
console-not-verified = A prova não é válida:
console-sessions-hint = Navegadores em que tem uma sessão.
console-this-session = este navegador
console-signed-in = Entrou em
console-end-session = Terminar
console-invite = Convidar
console-invited = ainda não entrou
console-ended = já não tem acesso
console-role = Função
console-change = Mudar
console-change-role = Mudar a função
console-invite-again = Enviar outro link
console-end-access = Terminar o acesso
status-pending = pendente
status-uploaded = carregado
status-preparing = em preparação
status-sent = enviado
status-viewed = aberto
status-completed = assinado
status-vaulted = no cofre
status-vaulted-out = entregue
status-declined = recusado
status-voided = anulado
status-expired = expirado
role-owner = Proprietário
role-admin = Administração
role-sender = Envio
role-compliance = Conformidade
role-auditor = Auditoria
role-controller = Controle
role-developer = Desenvolvimento
role-member = Membro
console-developers = Desenvolvimento
console-audit = Quem fez o quê
console-receivers = Recetores de webhooks
console-keys = Chaves de API
console-active = ativo
console-inactive = desativado
console-failing = falha desde
console-last-used = Último uso em
console-deliveries = Entregas
console-newer = Mais novas
console-earlier = Anteriores
console-attempts = Tentativas
console-no-answer = sem resposta
console-send-again = Enviar de novo
console-content = Conteúdo
delivery-pending = em espera
delivery-delivered = entregue
delivery-failed = falhou
console-rules = Regras
console-in-force = Em vigor
console-since = desde
console-planned = previsto para
console-requests = Pedidos de mudança
console-policy = Aprovações de que uma mudança precisa: { $count }
console-roll-back = voltar atrás
console-policy-change = política de mudanças
console-approvals = { $given } de { $required } aprovações
console-compared = { $differing } de { $compared } registos diferem
change-open = aberto
change-applied = aplicado
change-refused = recusado
change-withdrawn = retirado
change-outdated = ultrapassado
change-expired = expirado
review-approve = aprovado
review-refuse = recusado
review-comment = comentário
console-export = Exportar como CSV
console-from = Criado desde
console-to = até
