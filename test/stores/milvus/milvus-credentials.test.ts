import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseMilvusAddress } from '../../../src/stores/milvus/milvus-address.ts';
import { credentialsFor, type MilvusCredentials } from '../../../src/stores/milvus/milvus-credentials.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

function found(address: string): MilvusCredentials | undefined {
  return credentialsFor(parseMilvusAddress(address));
}

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
  for (const other of ['milvus://other/c', 'milvus://h:443/c', 'milvus+tls://h/c', 'milvus://h.example/c'])
    assert.equal(found(other), undefined, other);
  for (const unknown of ['milvus://reader@h/c', 'milvus://root@other/c'])
    assert.throws(() => found(unknown), trawlError('CONFIG_INVALID', /has a user, of whom no password/));
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
