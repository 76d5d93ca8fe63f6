import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { fileFolder, runTrawl, SAMPLE_PASSAGES, sampleIndex } from '../cli/run-trawl.ts';
import { otherPassages, otherPrefix } from './other-index.ts';
import { runTrials } from './trial.ts';
import { TRIALS } from './trials.ts';

const skip = process.platform === 'linux' ? false : 'memory and handles are read from /proc, which only Linux has';

const folder = await fileFolder();
let index: string;
const otherIndex = join(folder, 'other');
before(async () => {
  index = await sampleIndex(folder);
  const passages = join(folder, 'other.jsonl');
  writeFileSync(passages, await otherPassages(SAMPLE_PASSAGES));
  const { code, stderr } = await runTrawl(['index', passages, '--out', otherIndex, ...otherPrefix, '--quiet']);
  assert.equal(code, 0, stderr);
});

for (const [word, trial] of Object.entries(TRIALS)) {
  test(`${trial.name}: no answer is lost or wrong`, { skip }, async (t) => {
    const own = join(folder, word);
    mkdirSync(own);
    const options = { index, otherIndex, folder: own, seconds: 3, connections: 1_200, patient: false };
    const [result] = await runTrials([trial], options);
    const { outcome, reason, faults, counts } = result!;
    if (outcome === 'skipped') return t.skip(reason);
    assert.deepEqual(faults, {}, JSON.stringify(counts));
    assert.equal(outcome, 'passed', reason);
  });
}
