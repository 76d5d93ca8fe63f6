import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPack } from '../../../indexer/prepare/pack.ts';
import { unzstd } from '../../../src/base/files/decompress.ts';

test('zstd blocks written one after another are read as one stream, and a damaged checksum is found', async () => {
  const pack = openPack('zstd');
  const blocks = Array.from({ length: 20 }, (_, i) => new TextEncoder().encode(`block ${i}\n`.repeat(i * 100)));
  const packed = Buffer.concat(blocks.map(pack));
  assert.deepEqual(await unpack(packed), Buffer.concat(blocks));
  // The last bytes of a frame are its checksum.
  packed[packed.length - 1]! ^= 1;
  await assert.rejects(unpack(packed), /checksum/i);
});

async function unpack(bytes: Buffer): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of unzstd(from(bytes))) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function* from(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
