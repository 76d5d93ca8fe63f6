import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  credentialsFor,
  isOpenSearchAddress,
  parseOpenSearchAddress,
  shownAddress,
} from '../../../src/stores/opensearch/opensearch-address.ts';
import { shownPlace } from '../../../src/stores/published/published-address.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

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
    ['opensearch://admin:secret@h/i', /TRAWL_OPENSEARCH_CREDENTIALS/],
  ] as const) {
    assert.throws(
      () => parseOpenSearchAddress(address),
      (error: Error) => trawlError('CONFIG_INVALID', reason)(error) && !error.message.includes('secret'),
      address,
    );
  }
  assert.equal(shownPlace('NAME=opensearch+https://admin:se@cret@h/i?k=3'), 'NAME=opensearch+https://h/i?k=3');
});

test('a server gets the user and password of its own line, and no other server and no connection without TLS does', async (t) => {
  const [variable, fileVariable] = ['TRAWL_OPENSEARCH_CREDENTIALS', 'TRAWL_OPENSEARCH_CREDENTIALS_FILE'] as const;
  t.after(() => {
    delete process.env[variable];
    delete process.env[fileVariable];
  });
  const of = (address: string) => credentialsFor(parseOpenSearchAddress(address));
  assert.equal(of('opensearch://h/i'), undefined);
  process.env[variable] = 'opensearch+https://u:p%40%20w@h,opensearch+https://u:p%40%20w@h2:443';
  assert.deepEqual(of('opensearch+https://h,h2:443/i'), { server: 'h:9200', tls: true, user: 'u', password: 'p@ w' });
  for (const other of ['opensearch://h/i', 'opensearch+https://h:443/i', 'opensearch+https://g/i']) {
    assert.equal(of(other), undefined, other);
  }
  assert.throws(() => of('opensearch+https://h,g/i'), trawlError('CONFIG_INVALID', /different credentials/));
  const file = join(await tempFolder(t), 'credentials');
  writeFileSync(file, '# of the file\n\nopensearch://someone:else@h:80\n');
  process.env[fileVariable] = file;
  assert.deepEqual(of('opensearch://h:80/i'), { server: 'h:80', tls: false, user: 'someone', password: 'else' });
  for (const line of [
    'opensearch://u:secret',
    'milvus://u:secret@h',
    'opensearch://u:sec:ret@h',
    'opensearch://u:%zsecret@h',
  ]) {
    writeFileSync(file, line);
    assert.throws(
      () => of('opensearch://h/i'),
      (error: Error) => trawlError('CONFIG_INVALID', /line 1, is not opensearch/)(error) && !/sec/.test(error.message),
    );
  }
  process.env[fileVariable] = `${file}-missing`;
  assert.throws(() => of('opensearch://h/i'), trawlError('CONFIG_INVALID', /not the path of a file/));
});
