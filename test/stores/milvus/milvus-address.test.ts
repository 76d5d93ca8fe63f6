import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isMilvusAddress, parseMilvusAddress, shownAddress } from '../../../src/stores/milvus/milvus-address.ts';
import { shownPlace } from '../../../src/stores/published/shown-place.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

test('an address has server, database, collection, TLS and user', () => {
  assert.deepEqual(parseMilvusAddress('milvus://h/c'), {
    server: 'h:19530',
    tls: false,
    user: undefined,
    database: 'default',
    collection: 'c',
  });
  assert.deepEqual(parseMilvusAddress('MILVUS+tls://ro%40ot@milvus.example:443/wiki/wiki_18'), {
    server: 'milvus.example:443',
    tls: true,
    user: 'ro@ot',
    database: 'wiki',
    collection: 'wiki_18',
  });
  assert.equal(parseMilvusAddress('milvus://[::1]:1/c').server, '[::1]:1');
});

test('an address is not confused with a folder or a URL', () => {
  for (const text of ['milvus://h/c', 'milvus+tls://h/c', 'Milvus:c']) assert.ok(isMilvusAddress(text), text);
  for (const text of ['indexes/milvus', './milvus:', 'http://milvus/', 'milvusx://h/c'])
    assert.ok(!isMilvusAddress(text), text);
});

test('a wrong address is refused with the form that is expected, without repeating a password', () => {
  const wrong: readonly [string, RegExp][] = [
    ['milvus://h', /has no collection/],
    ['milvus://h/', /has no collection/],
    ['milvus:///c', /has no host|cannot be parsed/],
    ['milvus://h/d/', /has no collection/],
    ['milvus://h//c', /has no database/],
    ['milvus://h/d/c/e', /3 names/],
    [
      'milvus://h/d/my-index',
      /name of the collection that Milvus does not allow: names have letters, digits and underscores/,
    ],
    ['milvus://h/9d/c', /name of the database that Milvus does not allow/],
    ['milvus://root:12/secret@h/c', /name of the database .*percent-encoded/],
    ['milvus://root:12/secret/secret@h', /name of the collection .*percent-encoded/],
    ['milvus://root:12/9secret/x@h', /name of the database .*percent-encoded/],
    ['milvus://root:se/cret@h/c', /cannot be parsed/],
    ['milvus://h/c?x=1', /has a query/],
    ['milvus://root:secret@h/c', /has a password, which the list of processes.*TRAWL_MILVUS_CREDENTIALS_FILE/],
    ['milvus://:secret@h/c', /has a password/],
    ['milvus://%zz@h/c', /not percent-encoded/],
    ['milvus://h:port/c', /cannot be parsed/],
  ];
  for (const [text, reason] of wrong) {
    assert.throws(() => parseMilvusAddress(text), trawlError('CONFIG_INVALID', reason), text);
    assert.throws(() => parseMilvusAddress(text), trawlError('CONFIG_INVALID', /expected milvus:\/\/\[USER@\]HOST/));
    const withPassword = text.includes('@') ? text : text.replace('://', '://root:secret@');
    assert.throws(
      () => parseMilvusAddress(withPassword),
      (error: Error) => !error.message.includes('secret'),
    );
  }
});

test('no message shows user and password', () => {
  const address = 'milvus+tls://root:secret@h:1/d/c';
  assert.equal(shownAddress(parseMilvusAddress('milvus+tls://root@h:1/d/c')), 'milvus+tls://h:1/d/c');
  assert.equal(shownPlace(`NAME=${address}?k=3`), 'NAME=milvus+tls://h:1/d/c?k=3');
  assert.equal(shownPlace('milvus://root:se@cret@h/c'), 'milvus://h/c');
  assert.equal(shownPlace('milvus://root:12/sec@h/c'), 'milvus://h/c');
  assert.equal(shownPlace('milvus://root:1/2/sec@re@h/c and more'), 'milvus://h/c and more');
  assert.equal(shownPlace('indexes/a@b'), 'indexes/a@b');
});
