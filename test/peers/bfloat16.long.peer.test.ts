import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { importModel } from '../../indexer/model-import/import-model.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { miniLmFolder, withoutMiniLm } from '../helpers/peers.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { smallestCosine } from '../helpers/smallest-cosine.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const CORPUS = 'pool_wiki_dev/corpus.jsonl';
const withoutEngine = loadKernel().ok ? false : 'the native engine is not built';

test('all-MiniLM-L6-v2 in bfloat16: 2,000 passages have a cosine of at least 0.9999 to those of float32', {
  skip: withoutEngine || withoutMiniLm() || withoutSharedData(CORPUS),
}, async (t) => {
  const folder = await tempFolder(t);
  const precisions = ['float32', 'bfloat16'] as const;
  const { folder: model } = await importModel(miniLmFolder()!, { out: join(folder, 'minilm'), precisions });
  const lines = (await readFile(sharedData(CORPUS), 'utf8')).split('\n');
  const texts = Array.from({ length: 2000 }, (_, i) => (JSON.parse(lines[i * 39]!) as { contents: string }).contents);
  const [whole, half] = await Promise.all(precisions.map((precision) => openEncoder(model, { precision })));
  t.after(() => Promise.all([whole!.close(), half!.close()]));
  const cosine = await smallestCosine(whole!, half!, texts);
  t.diagnostic(`smallest cosine: ${cosine}`);
  assert.ok(cosine >= 0.9999, String(cosine));
});
