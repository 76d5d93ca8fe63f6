import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Ended, endOf, runTrawl, SAMPLE_PASSAGES, spawnTrawl } from '../cli/run-trawl.ts';
import { withoutOpenssl } from '../helpers/certificate.ts';
import { OpenSearchNode, withoutOpenSearch } from './opensearch-node.ts';
import { TestAuthority, TlsProxy } from './tls-proxy.ts';

const skip = withoutOpenSearch() || withoutOpenssl();
const USER = 'trawl:s3cret%40word';
const PLAIN_USER = 'trawl:s3cret@word';
const NAMES = 'DNS:localhost,IP:127.0.0.1';
let node: OpenSearchNode;
let folder: string;
let authority: TestAuthority;

before(async () => {
  if (skip !== false) return;
  folder = await mkdtemp(join(tmpdir(), 'trawl-test-'));
  authority = new TestAuthority(folder);
  node = await OpenSearchNode.start();
  const ended = await runTrawl(['index', SAMPLE_PASSAGES, '--out', join(folder, 'local'), '--quiet']);
  assert.equal(ended.code, 0, ended.stderr);
});
after(async () => {
  await node?.stop();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

/** Runs the program with an environment that Node.js reads at its start. No output may have the password. */
async function trawl(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const ended = await endOf(spawnTrawl(args, { env }));
  assert.doesNotMatch(ended.stdout + ended.stderr, /s3cret/);
  return ended;
}

test('with TLS and a password, an index is published and searched as without, and the password goes over TLS alone', {
  skip,
}, async (t) => {
  const proxy = await TlsProxy.start(node.port, { tls: authority.certificate(NAMES), user: PLAIN_USER });
  t.after(() => proxy.stop());
  const line = `opensearch+https://${USER}@localhost:${proxy.port}`;
  const file = join(folder, 'credentials');
  writeFileSync(file, `# a comment\n${line}\n`);
  const trusted = { NODE_EXTRA_CA_CERTS: authority.file };
  const env = { ...trusted, TRAWL_OPENSEARCH_CREDENTIALS_FILE: file };
  const address = `opensearch+https://localhost:${proxy.port}/secured`;
  const published = await trawl(['publish', join(folder, 'local'), address, '--quiet'], env);
  assert.equal(published.code, 0, published.stderr);
  const search = ['--json', 'who designed the Eiffel Tower'];
  const hits = async (place: string, with_: typeof env): Promise<unknown> => {
    const { code, stdout, stderr } = await trawl(['search', place, ...search], with_);
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout, (key, value) => (['timings', 'rescored', 'index'].includes(key) ? undefined : value));
  };
  assert.deepEqual(await hits(address, env), await hits(join(folder, 'local'), env));
  assert.ok(proxy.authorizations.length > 5);
  assert.equal((await trawl(['doctor', address], env)).code, 0);

  // Without a line, and with a wrong password.
  const wrong: Record<string, string> = { TRAWL_OPENSEARCH_CREDENTIALS: line.replace('word', 'sword') };
  for (const credentials of [{}, wrong]) {
    const refused = await trawl(['search', address, 'x'], { ...trusted, ...credentials });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /refuses to .*Check its line in TRAWL_OPENSEARCH_CREDENTIALS.*\[STORE_REFUSED\]/);
  }

  // The same host and port without TLS: the line is not used.
  const plain = await TlsProxy.start(node.port, { user: PLAIN_USER });
  t.after(() => plain.stop());
  const lineOfPlain = `opensearch+https://${USER}@localhost:${plain.port}`;
  const unsent = await trawl(['search', `opensearch://localhost:${plain.port}/secured`, 'x'], {
    TRAWL_OPENSEARCH_CREDENTIALS: lineOfPlain,
  });
  assert.match(unsent.stderr, /\[STORE_REFUSED\]/);
  assert.deepEqual([...new Set(plain.authorizations)], [undefined]);
  // TLS to a port without it, and the reverse.
  const overTls = await trawl(['search', `opensearch+https://localhost:${plain.port}/secured`, 'x'], {
    ...trusted,
    TRAWL_OPENSEARCH_CREDENTIALS: lineOfPlain,
  });
  assert.match(overTls.stderr, /does not use TLS at this port: use opensearch:\/\/.*\[STORE_FAILED\]/);
  assert.deepEqual([...new Set(plain.authorizations)], [undefined]);
  const withoutTls = await trawl(['search', `opensearch://localhost:${proxy.port}/secured`, 'x'], env);
  assert.match(withoutTls.stderr, /\[STORE_FAILED\]/);
});

test('an untrusted, expired or other certificate is refused with what to do, and no password is sent', {
  skip,
}, async (t) => {
  const other = new TestAuthority(await mkdtemp(join(folder, 'other-')));
  const cases: [string, TestAuthority, Parameters<TestAuthority['certificate']>, RegExp][] = [
    ['untrusted', other, [NAMES], /authority that is not trusted here: name the file .* NODE_EXTRA_CA_CERTS/],
    ['expired', authority, [NAMES, -1], /certificate has expired\. Renew the certificate of the server/],
    ['of another host', authority, ['DNS:search.example'], /Use a host name that the certificate has/],
  ];
  for (const [name, signer, wanted, advice] of cases) {
    const proxy = await TlsProxy.start(node.port, { tls: signer.certificate(...wanted), user: PLAIN_USER });
    t.after(() => proxy.stop());
    const address = `opensearch+https://localhost:${proxy.port}/secured`;
    const env = {
      NODE_EXTRA_CA_CERTS: authority.file,
      TRAWL_OPENSEARCH_CREDENTIALS: `opensearch+https://${USER}@localhost:${proxy.port}`,
    };
    const refused = await trawl(['search', address, 'x'], env);
    assert.equal(refused.code, 1, name);
    assert.match(refused.stderr, advice, name);
    assert.match(refused.stderr, /\[STORE_FAILED\]/);
    const doctor = await trawl(['doctor', address], env);
    assert.equal(doctor.code, 3);
    assert.match(doctor.stdout, advice);
    assert.deepEqual(proxy.authorizations, [], `a ${name} certificate got a request`);
  }
});
