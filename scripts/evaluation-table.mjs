// `sh scripts/run scripts/evaluation-table.mjs`: measures the rows of the table in bench/quality.md, and writes them to
// bench/results/evaluation.json. `npm run reproduce -- evaluation` measures the same in a temporary folder and compares.
//
//   --data DIR    folder with hotpot_val500_pooled, squad_v11_dev, scifact_tevatron_emb and search_calls. Default: ../shared/data
//   --model DIR   checkpoint of the encoder. Default: the all-MiniLM-L6-v2 of `trawl bench baselines embed`; without one the bundled encoder
//   --python FILE a Python with faiss-cpu and usearch. Default: that of `trawl bench baselines`; without one no rows of theirs
//   --out FILE    the JSON file to write. Default: bench/results/evaluation.json
//   --work DIR    where models and indexes are kept between runs. Default: a new temporary folder
import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { root, setup } from './setup.mjs';

const names = ['data', 'model', 'out', 'python', 'work'];
const { values } = parseArgs({ options: Object.fromEntries(names.map((name) => [name, { type: 'string' }])) });
await setup();
const { writeSystems } = await import('../dist/bench/reproduce/systems-quality.js');
const { installedMiniLm } = await import('../dist/bench/all/bench-inputs.js');
const { cacheFolder } = await import('../dist/src/base/options/cache-folder.js');
const { baselinePython } = await import('../dist/bench/baselines.js');
const cache = cacheFolder('trawl');
const work = resolve(values.work ?? mkdtempSync(join(tmpdir(), 'trawl-evaluation-')));
mkdirSync(work, { recursive: true });
const out = resolve(values.out ?? join(root, 'bench', 'results', 'evaluation.json'));
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());
await writeSystems(out, {
  data: resolve(values.data ?? join(root, '..', 'shared', 'data')),
  checkpoint: values.model === undefined ? installedMiniLm(cache) : resolve(values.model),
  python: values.python ?? baselinePython(cache, 'flat'),
  work,
  signal: stop.signal,
  note: (text) => process.stderr.write(`${text}\n`),
});
process.stdout.write(`${out} is written. \`npm run tables\` writes the table of bench/quality.md.\n`);
