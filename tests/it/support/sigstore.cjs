// Stands in for Sigstore's public instance: a certificate authority with its transparency log, and the log of
// signatures. Reads what to sign from standard input; writes a trusted root, bundles, and the public key of bundles
// without a certificate.

const crypto = require('node:crypto');
const fs = require('node:fs');
const nock = require('nock');
const { bundleToJSON } = require('@sigstore/bundle');
const { fulcioHandler, initializeCA, initializeTLog, rekorHandler } = require('@sigstore/mock');
const { DSSEBundleBuilder, FulcioSigner, MessageSignatureBundleBuilder, RekorWitness } = require('@sigstore/sign');

const AUTHORITY = 'https://fulcio.sigstore.dev';
const LOG = 'https://rekor.sigstore.dev';
const CERTIFICATES = 'https://ctfe.sigstore.dev';

const keyPair = () => crypto.generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
const der = key => key.export({ format: 'der', type: 'spki' });
const sha256 = bytes => crypto.createHash('sha256').update(bytes).digest();
const hashed = bytes => ({ algorithm: 'sha256', value: sha256(bytes).toString('hex') });
const number = (value, bytes) => {
  const all = Buffer.alloc(8);
  all.writeBigUInt64BE(BigInt(value));
  return all.subarray(8 - bytes);
};

// Log of certificates (RFC 6962, section 3.2).
const certificateLog = ({ publicKey, privateKey }) => ({
  async log(certificate, issuer) {
    const bytes = Buffer.from(certificate);
    const tbs = bytes.subarray(4, 8 + bytes.readUInt16BE(6));
    const at = number(Date.now(), 8);
    const signed = Buffer.concat([
      number(0, 2), at, number(1, 2), Buffer.from(issuer), number(tbs.length, 3), tbs, number(0, 2),
    ]);
    const signature = crypto.sign('sha256', signed, privateKey);
    const entry = Buffer.concat([
      number(0, 1), sha256(der(publicKey)), at, number(0, 2), Buffer.from([4, 3]), number(signature.length, 2), signature,
    ]);
    return Buffer.concat([number(entry.length, 2), entry]);
  },
});

// The log keeps the hashes of a statement instead of its content.
const recorded = entry => {
  const proposed = entry.spec.proposedContent;
  if (!proposed) return entry;
  const envelope = JSON.parse(proposed.envelope);
  const signatures = envelope.signatures.map(({ sig }) => ({ signature: sig, verifier: proposed.verifiers[0] }));
  const payloadHash = hashed(Buffer.from(envelope.payload, 'base64'));
  return { ...entry, spec: { envelopeHash: hashed(proposed.envelope), payloadHash, signatures } };
};

const serve = (url, handler) =>
  nock(url).persist().post(handler.path).reply(async (_, body) => {
    const answer = await handler.fn(typeof body === 'string' ? body : JSON.stringify(body));
    return [answer.statusCode, answer.response, { 'content-type': 'application/json' }];
  });

const token = claims => {
  const part = value => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'none' })}.${part(claims)}.`;
};

async function main() {
  const start = new Date(Date.now() - 60_000).toISOString();
  const [ofAuthority, ofCertificates, ofLog, own] = [keyPair(), keyPair(), keyPair(), keyPair()];
  const authority = await initializeCA(ofAuthority, certificateLog(ofCertificates));
  const log = await initializeTLog(LOG, ofLog);
  serve(AUTHORITY, fulcioHandler(authority));
  serve(LOG, rekorHandler({ log: entry => log.log(recorded(entry)) }));

  const publicKey = own.publicKey.export({ format: 'pem', type: 'spki' });
  const withKey = {
    sign: async data => ({
      signature: crypto.sign('sha256', data, own.privateKey),
      key: { $case: 'publicKey', publicKey, hint: 'own' },
    }),
  };
  const bundles = [];
  for (const { file, identity, issuer, predicate_type, predicate } of JSON.parse(fs.readFileSync(0, 'utf8'))) {
    const identityProvider = { getToken: async () => token({ sub: identity, iss: issuer }) };
    const signer = identity ? new FulcioSigner({ identityProvider }) : withKey;
    const options = { signer, witnesses: [new RekorWitness({ entryType: 'dsse' })] };
    const data = fs.readFileSync(file);
    const statement = {
      _type: 'https://in-toto.io/Statement/v1',
      subject: [{ name: 'component', digest: { sha256: sha256(data).toString('hex') } }],
      predicateType: predicate_type,
      predicate,
    };
    const bundle = predicate_type
      ? await new DSSEBundleBuilder(options).create({
          data: Buffer.from(JSON.stringify(statement)),
          type: 'application/vnd.in-toto+json',
        })
      : await new MessageSignatureBundleBuilder(options).create({ data });
    bundles.push(bundleToJSON(bundle));
  }

  const trustedLog = (baseUrl, { publicKey: key }) => ({
    baseUrl,
    hashAlgorithm: 'SHA2_256',
    publicKey: {
      rawBytes: der(key).toString('base64'),
      keyDetails: 'PKIX_ECDSA_P256_SHA_256',
      validFor: { start },
    },
    logId: { keyId: sha256(der(key)).toString('base64') },
  });
  const root = {
    mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
    tlogs: [trustedLog(LOG, ofLog)],
    ctlogs: [trustedLog(CERTIFICATES, ofCertificates)],
    certificateAuthorities: [{
      subject: { organization: 'sigstore', commonName: 'sigstore' },
      uri: AUTHORITY,
      certChain: { certificates: [{ rawBytes: authority.rootCertificate.toString('base64') }] },
      validFor: { start },
    }],
    timestampAuthorities: [],
  };
  console.log(JSON.stringify({ root, bundles, public_key: publicKey }));
}

main().catch(error => {
  console.error(error);
  process.exit(1);
});
