import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  credentialsFor,
  isMilvusAddress,
  parseMilvusAddress,
  shownAddress,
} from '../../../src/stores/milvus/milvus-address.ts';
import { shownPlace } from '../../../src/stores/published/published-address.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
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
  assert.equal(parseMilvusAddress('milvus://Node.1/c').server, 'node.1:19530', 'not the number of an IPv4 address');
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
    ['milvus:///c', /has no host;/],
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

const found = (address: string) => credentialsFor(parseMilvusAddress(address));

test('a line belongs to one server, one user and to TLS or not, and the file comes before the variable', async (t) => {
  const file = join(await tempFolder(t), 'credentials');
  writeFileSync(
    file,
    [
      '# Clusters',
      'milvus://root:p%40ss%3Aw%2C@h',
      ' milvus+tls://reader:second@h:443/ ',
      '',
      'milvus://writer:third@H',
      'milvus://mail@example:a:b@node.1',
    ].join('\n'),
  );
  t.after(() => {
    delete process.env['TRAWL_MILVUS_CREDENTIALS_FILE'];
    delete process.env['TRAWL_MILVUS_CREDENTIALS'];
  });
  process.env['TRAWL_MILVUS_CREDENTIALS'] = 'milvus://a:b@h,milvus://c:d@other';
  assert.deepEqual(found('milvus://h/c'), { ...found('milvus://h/c'), user: 'a', password: 'b' });
  assert.equal(found('milvus://other/c')?.password, 'd');
  process.env['TRAWL_MILVUS_CREDENTIALS_FILE'] = file;
  assert.equal(found('milvus://h/c')?.password, 'p@ss:w,');
  assert.equal(found('milvus://writer@h/c')?.user, 'writer');
  assert.equal(found('milvus+tls://h:443/c')?.password, 'second');
  assert.deepEqual(found('milvus://node.1/c'), {
    server: 'node.1:19530',
    tls: false,
    user: 'mail@example',
    password: 'a:b',
  });
  for (const other of ['milvus://other/c', 'milvus://h:443/c', 'milvus+tls://h/c', 'milvus://h.example/c'])
    assert.equal(found(other), undefined, other);
  for (const unknown of ['milvus://reader@h/c', 'milvus://root@other/c'])
    assert.throws(() => found(unknown), trawlError('CONFIG_INVALID', /has a user without a password/));
});

test('a line in the variable of the file is refused, and the message does not show it', (t) => {
  const variable = 'TRAWL_MILVUS_CREDENTIALS_FILE';
  process.env[variable] = 'milvus://root:Secret9@h:1';
  t.after(() => delete process.env[variable]);
  assert.throws(
    () => found('milvus://h:1/c'),
    (error: Error) => {
      assert.match(
        error.message,
        /^TRAWL_MILVUS_CREDENTIALS_FILE is not the path of a file that can be read \(ENOENT\)/,
      );
      assert.doesNotMatch(error.message, /Secret9|root/);
      return true;
    },
  );
});
