// Commands killed at random moments, resumed, and compared with undisturbed ones: builds, or with an option another command.
// `--updates` kills updates of an index instead of builds, `--bm25` commands that make inverted indexes, `--columns` commands that make
// columns for filters, `--search` bulk searches, `--mine` runs of `trawl mine`, `--iterate` iterations of the training loop, `--sync` copies
// of an index. `--moments N` sets the number of kills (default 200), `--passages N` the size; `--seed N` repeats a run.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { setup } from '../setup.mjs';

const { values } = parseArgs({
  options: {
    moments: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 1e6) },
    updates: { type: 'boolean', default: false },
    bm25: { type: 'boolean', default: false },
    columns: { type: 'boolean', default: false },
    search: { type: 'boolean', default: false },
    mine: { type: 'boolean', default: false },
    iterate: { type: 'boolean', default: false },
    sync: { type: 'boolean', default: false },
    passages: { type: 'string', default: '4000' },
  },
});
await setup();
const { killAndResume } = await import('../../dist/test/indexer/kill-and-resume.js');
const { killSearches } = await import('../../dist/test/evaluation/bulk-search/kill-bulk-search.js');
const { killIterations } = await import('../../dist/test/training/iteration/kill-iterations.js');
const { killSyncs } = await import('../../dist/test/indexer/sync/kill-syncs.js');
const { killMining } = await import('../../dist/test/training/mining/kill-mining-runs.js');
const folder = mkdtempSync(join(tmpdir(), 'trawl-kill-'));
const begun = performance.now();
process.stderr.write(`seed ${values.seed}, ${folder}\n`);
const shared = {
  folder,
  moments: Number(values.moments),
  seed: Number(values.seed),
  passages: Number(values.passages),
  onMoment: (text) => process.stderr.write(`${text}\n`),
};
const { updates, bm25, columns } = values;
const result = await kill();

rmSync(folder, { recursive: true });
const seconds = Math.round((performance.now() - begun) / 1000);
process.stdout.write(
  `${JSON.stringify({ ...result, seed: Number(values.seed), passages: Number(values.passages), seconds })}\n`,
);

function kill() {
  if (values.iterate) return killIterations({ ...shared, passages: Math.min(shared.passages, 400) });
  if (values.sync) return killSyncs(shared);
  if (values.search) return killSearches(shared);
  if (values.mine) return killMining(shared);
  return killAndResume({ ...shared, updates, bm25, columns });
}
