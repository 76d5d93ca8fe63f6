import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isOpenSearchAddress, parseOpenSearchAddress, shownAddress } from '../../src/opensearch/opensearch-address.ts';
import { openSearchCredentials } from '../../src/opensearch/opensearch-credentials.ts';
import { shownPlace } from '../../src/published/shown-place.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';

test('an address has hosts, a scheme and an index', () => {
  assert.deepEqual(parseOpenSearchAddress('opensearch://h/wiki-18'), {
    servers: ['h:9200'],
    tls: false,
    index: 'wiki-18',
  });
  assert.deepEqual(parseOpenSearchAddress('opensearch+https://a:80,b,[::1]:443/i.1'), {
    servers: ['a:80', 'b:9200', '[::1]:443'],
    tls: true,
    index: 'i.1',
  });
  assert.equal(shownAddress(parseOpenSearchAddress('OpenSearch+HTTPS://a,b:1/i')), 'opensearch+https://a:9200,b:1/i');
  assert.ok(isOpenSearchAddress('opensearch:x'));
  for (const other of ['milvus://h/c', 'indexes/opensearch', './opensearch://h/i', 'http://h:9200/i']) {
    assert.ok(!isOpenSearchAddress(other), other);
  }
});

test('a wrong address is refused with the reason, and never repeated', () => {
  for (const [address, reason] of [
    ['opensearch:h/i', /cannot be parsed/],
    ['opensearch://h', /has no index/],
    ['opensearch://h/', /has no index/],
    ['opensearch:///secret', /has no host/],
    ['opensearch://a,,b/secret', /has no host/],
    ['opensearch://a b/secret', /has no host/],
    ['opensearch://h/Secret', /does not allow/],
    ['opensearch://h/_secret', /does not allow/],
    ['opensearch://h/secret/more', /does not allow/],
    ['opensearch://h/a,secret', /does not allow/],
    ['opensearch://h/secret*', /does not allow/],
    ['opensearch://h/..', /does not allow/],
    ['opensearch://h/secret?pretty', /a query or a fragment/],
    ['opensearch://admin:secret@h/i', /TRAWL_OPENSEARCH_USER/],
  ] as const) {
    assert.throws(
      () => parseOpenSearchAddress(address),
      (error: Error) => trawlError('CONFIG_INVALID', reason)(error) && !error.message.includes('secret'),
      address,
    );
  }
  assert.equal(shownPlace('NAME=opensearch+https://admin:se@cret@h/i?k=3'), 'NAME=opensearch+https://h/i?k=3');
});

test('user and password come from the environment, the password also from a file', async (t) => {
  const file = join(await tempFolder(t), 'password');
  writeFileSync(file, 'from file\n');
  const [user, password, path] = [
    'TRAWL_OPENSEARCH_USER',
    'TRAWL_OPENSEARCH_PASSWORD',
    'TRAWL_OPENSEARCH_PASSWORD_FILE',
  ];
  assert.equal(openSearchCredentials({}), undefined);
  assert.deepEqual(openSearchCredentials({ [user!]: 'u', [password!]: 'p w' }), { username: 'u', password: 'p w' });
  assert.deepEqual(openSearchCredentials({ [user!]: 'u', [path!]: file }), { username: 'u', password: 'from file' });
  for (const env of [
    { [user!]: 'u' },
    { [password!]: 'secret' },
    { [user!]: 'u', [password!]: 'secret', [path!]: file },
    { [user!]: 'u', [path!]: `${file}-missing` },
  ]) {
    assert.throws(
      () => openSearchCredentials(env),
      (error: Error) => trawlError('CONFIG_INVALID', /./)(error) && !error.message.includes('secret'),
    );
  }
});
