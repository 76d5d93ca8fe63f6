import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { downloadRepository } from '../../../indexer/hub/download-repository.ts';
import { HubServer } from '../../helpers/hub-server.ts';
import { seededBytes } from '../../helpers/seeded-bytes.ts';
import { smallDisk } from '../../helpers/small-disk.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

test('a download fails with DISK_FULL when the disk fills up, and continues after space is freed', async (t) => {
  const disk = join(await tempFolder(t), 'disk');
  mkdirSync(disk);
  const mounted = smallDisk(disk, 4096);
  if ('missing' in mounted) return t.skip(mounted.missing);
  const content = { name: 'org/big', files: { 'big.bin': seededBytes(1, 3_000_000) } };
  const hub = await HubServer.start(content);
  try {
    hub.behaviour['big.bin'] = { pauseMs: 5, chunkBytes: 50_000 };
    const settings = { endpoint: hub.endpoint, token: undefined, offline: false };
    const into = join(disk, 'into');
    const filler = join(disk, 'filler');
    let filled = false;
    const fetch = () =>
      downloadRepository({
        repository: { type: 'model', name: content.name },
        into,
        settings,
        onProgress: () => {
          if (!filled) writeFileSync(filler, Buffer.alloc(2_000_000));
          filled = true;
        },
      });
    await assert.rejects(fetch(), trawlError('DISK_FULL', /no space left.*the same command resumes/i));
    const kept = statSync(join(into, 'big.bin.partial')).size;
    assert.ok(kept > 1_000_000 && kept < 3_000_000, `${kept} bytes were kept`);
    rmSync(filler);
    const { transferredBytes } = await fetch();
    assert.equal(transferredBytes, 3_000_000 - kept);
    assert.ok(readFileSync(join(into, 'big.bin')).equals(content.files['big.bin']));
  } finally {
    await hub.close();
    mounted.unmount();
  }
});
