// Three servers under load: one killed, an index swapped, no answer lost or mixed.
// The servers have copies of the sample index, and one client the URLs of all. After one server was killed and restarted, another index is
// copied to all and swapped by `trawl admin rollout`. None of 100,000 answers may fail, and each must be that of the old or of the new
// index. `--answers N` changes the number; `--out FILE` writes the figures as JSON.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { setup } from '../setup.mjs';

const { values } = parseArgs({ options: { answers: { type: 'string', default: '100000' }, out: { type: 'string' } } });
await setup();
const { replicas } = await import('../../dist/test/replicas/replicas.js');
const { buildSampleIndex } = await import('../../dist/test/helpers/sample-index.js');
const folder = mkdtempSync(join(tmpdir(), 'trawl-replicas-'));
try {
  const result = await replicas({
    folder,
    index: await buildSampleIndex(folder),
    answers: Number(values.answers),
    clients: 8,
    onStep: (text) => process.stderr.write(`${text}\n`),
  });
  const { failed, mixed, oldAfterSwap } = result;
  const text = JSON.stringify({ ...result, failed: failed.length, mixed: mixed.length }, null, 2);
  process.stdout.write(`${text}\n`);
  for (const problem of [...failed, ...mixed].slice(0, 10)) process.stderr.write(`${problem}\n`);
  if (values.out !== undefined) writeFileSync(values.out, `${text}\n`);
  process.exitCode = failed.length + mixed.length + oldAfterSwap > 0 ? 1 : 0;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
