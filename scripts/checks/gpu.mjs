// The encoder on an NVIDIA GPU beside the CPU and torch (test/gpu, docs/gpu.md).
// Without a GPU it runs up to the first step that needs one, says what is missing and what to do, and ends with 3. Writes gpu-report.txt
// and gpu-report.json.
// `--out DIR` (default: gpu-report); `--provider DIR` has onnxruntime's CUDA libraries, for a machine without internet;
// `--cuda-libraries DIR,DIR` has those that they are linked with; `--python PATH` has torch for the GPU and sentence-transformers, to
// compare with. `--models DIR` keeps the models and takes them again. `--only STEP,STEP` runs only these steps on the GPU, as the report
// names them. `--rehearse` does every step on the CPU, `--small` with tiny models; both try the test, not a GPU.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { setup } from '../setup.mjs';
import { bringProvider, cudaFolders } from './gpu/gpu-libraries.mjs';

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: 'gpu-report' },
    provider: { type: 'string' },
    'cuda-libraries': { type: 'string' },
    python: { type: 'string' },
    models: { type: 'string' },
    only: { type: 'string' },
    rehearse: { type: 'boolean', default: false },
    small: { type: 'boolean', default: false },
    'no-setup': { type: 'boolean', default: false },
    // The steps themselves, in a process that finds CUDA's libraries.
    steps: { type: 'boolean', default: false },
  },
});
if (values.steps) await runSteps();
else {
  if (!values['no-setup']) await setup();
  if (!values.rehearse) bringProvider(values.provider, say);
  const python = findPython();
  const { LD_LIBRARY_PATH: known = '' } = process.env;
  const given = values['cuda-libraries']?.split(',').map((folder) => resolve(folder)) ?? [];
  const folders = [...known.split(':'), ...(values.rehearse ? [] : cudaFolders(given, python, say))].filter(
    (folder) => folder !== '',
  );
  const args = process.argv
    .slice(2)
    .filter((word, i, words) => !['--python'].includes(word) && words[i - 1] !== '--python');
  const child = spawn(
    process.execPath,
    [fileURLToPath(import.meta.url), '--steps', ...args, ...(python === undefined ? [] : ['--python', python])],
    // CUDA numbers the GPUs as nvidia-smi does.
    { stdio: 'inherit', env: { CUDA_DEVICE_ORDER: 'PCI_BUS_ID', ...process.env, LD_LIBRARY_PATH: folders.join(':') } },
  );
  // The child gets the terminal's Ctrl-C too, and removes its files; SIGTERM is sent to this process alone.
  process.on('SIGINT', () => undefined);
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  child.on('close', (code) => (process.exitCode = code ?? 1));
}

async function runSteps() {
  const { runGpuTest } = await import('../../dist/test/gpu/gpu-test.js');
  const folder = mkdtempSync(join(tmpdir(), 'trawl-gpu-'));
  // Files may still be written while they are removed.
  const clean = () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ]) {
    process.once(signal, () => process.exit(code));
  }
  // Behind what ends the test's own processes, which write there.
  process.once('exit', clean);
  const out = resolve(values.out);
  const { rehearse, small, python } = values;
  const models = values.models === undefined ? folder : resolve(values.models);
  const only = values.only?.split(',').map((name) => name.trim());
  process.exitCode = await runGpuTest({ rehearse, small, python, folder, models, only, out, say });
  say(`The report is in ${join(out, 'gpu-report.txt')} and ${join(out, 'gpu-report.json')}.`);
}

/** `--python`, else python3 if it has torch for this GPU and sentence-transformers. */
function findPython() {
  if (values.python !== undefined) return resolve(values.python);
  if (values.rehearse || !existsSync('/dev/nvidiactl')) return undefined;
  const check = 'import sentence_transformers, torch; torch.zeros(1, device="cuda")';
  const { status } = spawnSync('python3', ['-c', check], { stdio: 'ignore' });
  return status === 0 ? 'python3' : undefined;
}

function say(line) {
  process.stderr.write(`${line}\n`);
}
