import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { importModel } from '../../indexer/model-import/import-model.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import { miniLmFolder, torchPython, withoutMiniLm } from '../helpers/peers.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const FAMILIES = ['Qwen3', 'ModernBERT', 'T5', 'nomic', 'GTE', 'BERT'];
const PRECISIONS = ['float32', 'int8'] as const;
const BATCHES = [2, 3, 5, 8, 13, 32];
const skip = withoutMiniLm();

interface Written {
  readonly family: string;
  readonly folder: string;
}

let written: readonly Written[] = [];
let checkpoints: string | undefined;

before(async () => {
  if (skip !== false) return;
  checkpoints = await mkdtemp(join(tmpdir(), 'trawl-test-'));
  const script = join(packageRoot, 'bench', 'baselines', 'random_encoders.py');
  const tokenizer = join(miniLmFolder()!, 'tokenizer.json');
  const { stdout } = await promisify(execFile)(torchPython(), [script, checkpoints, tokenizer]);
  written = JSON.parse(stdout) as readonly Written[];
});

after(() => (checkpoints === undefined ? undefined : rm(checkpoints, { recursive: true, force: true })));

for (const family of FAMILIES) {
  test(`${family} in the width of a known model: a text has the same bits alone, in batches of 2 to 32 and in other orders`, {
    skip,
  }, async (t) => {
    const { folder } = written.find((each) => each.family === family)!;
    const out = join(await tempFolder(t), 'model');
    await importModel(folder, { out, precisions: PRECISIONS });
    const texts = await textsOfAllLengths();
    for (const precision of PRECISIONS) {
      const encoder = await openEncoder(out, { precision, workers: 2 });
      t.after(() => encoder.close());
      const encode = async (batch: readonly string[]): Promise<readonly Float32Array[]> => {
        const { vectors } = await encoder.encode(batch, { inputType: 'passage' });
        return batch.map((_, i) => vectors.slice(i * encoder.dimension, (i + 1) * encoder.dimension));
      };
      const alone = new Map<string, Float32Array>();
      for (const text of texts) alone.set(text, (await encode([text]))[0]!);
      const random = seededRandom(29);
      for (const size of BATCHES) {
        const order = texts.map((text) => ({ text, at: random() })).sort((a, b) => a.at - b.at);
        for (let start = 0; start < order.length; start += size) {
          const batch = order.slice(start, start + size).map(({ text }) => text);
          for (const [i, vector] of (await encode(batch)).entries()) {
            assert.deepEqual(vector, alone.get(batch[i]!), `${precision}, a batch of ${size}: ${batch[i]}`);
          }
        }
      }
      await encoder.close();
    }
  });
}

/** Texts of 0 to about 250 tokens: passages, their beginnings, and pairs that have the same length. */
async function textsOfAllLengths(): Promise<readonly string[]> {
  const lines = (await readFile(join(packageRoot, 'corpus/sample/passages.jsonl'), 'utf8')).trim().split('\n');
  const passages = lines.slice(0, 10).map((line) => (JSON.parse(line) as { text: string }).text);
  const cut = passages.map((passage, i) =>
    passage
      .split(' ')
      .slice(0, 1 + 3 * i)
      .join(' '),
  );
  return ['', 'a', 'b', 'one two', 'two one', ...cut, ...passages, `${passages[0]} ${passages[1]} ${passages[2]}`];
}
