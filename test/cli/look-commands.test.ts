import assert from 'node:assert/strict';
import { cpSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, type TestContext, test } from 'node:test';
import { chosenLines, encoderLines } from '../../cli/commands/doctor.ts';
import { EXIT } from '../../cli/program/command.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { fileFolder, jsonOf, runTrawl, sampleIndex } from './run-trawl.ts';

const VECTORS = join('shard-00000', 'vectors.faiss');
const CODES = 'shard-00000/codes.i8';
const PASSAGES = join('shard-00000', 'passages.sqlite');

const folder = await fileFolder();
let index: string;
before(async () => {
  index = await sampleIndex(folder);
});

/** Copies the index, so that a test may damage it. */
async function copyOfIndex(t: TestContext): Promise<string> {
  const copy = join(await tempFolder(t), 'copy');
  cpSync(index, copy, { recursive: true });
  return copy;
}

function flipByte(path: string, offset: number): void {
  const bytes = readFileSync(path);
  bytes[offset]! ^= 1;
  writeFileSync(path, bytes);
}

test('inspect prints the facts of an index as text', async () => {
  const { code, stdout, stderr } = await runTrawl(['inspect', index]);
  assert.deepEqual([code, stderr], [0, '']);
  for (const fact of [
    index,
    'rows          270 × ',
    'model         token-average-256',
    'passages.jsonl  270 passages',
    `written by    trawl ${packageVersion}`,
  ]) {
    assert.ok(stdout.includes(fact), fact);
  }
});

test('inspect --json prints the manifest with folder and sizes', async () => {
  const { folder, sizes, ...manifest } = jsonOf<{ folder: string; sizes: object }>(
    await runTrawl(['inspect', index, '--json']),
  );
  assert.equal(folder, index);
  const { checksum, ...written } = JSON.parse(readFileSync(join(index, 'manifest.json'), 'utf8')) as {
    checksum: string;
  };
  assert.match(checksum, /^[0-9a-f]{64}$/);
  assert.deepEqual(manifest, written);
  assert.deepEqual(sizes, {
    // The FAISS header is 45 bytes.
    vectorBytes: statSync(join(index, VECTORS)).size - 45,
    residentBytes: loadKernel().ok ? statSync(join(index, CODES)).size : statSync(join(index, VECTORS)).size - 45,
    // The sample is too small for a prefilter, so every search reads all codes.
    touchedBytes: 0,
    // The sample is indexed without --bm25.
    wordBytes: 0,
    columnBytes: 0,
    passageBytes: statSync(join(index, PASSAGES)).size,
  });
});

test('verify finds no problem in an undamaged index', async () => {
  const { code, stdout, stderr } = await runTrawl(['verify', index]);
  assert.deepEqual([code, stdout], [0, `${index}: intact\n`]);
  assert.match(stderr, /checksum of .*vectors\.faiss/);
  assert.match(stderr, /32 passages embedded again: 32 equal to the last bit\n270 rows in 1 shard\n/);
  assert.deepEqual(jsonOf(await runTrawl(['verify', index, '--json', '--quiet', '--sample', '5'])), {
    folder: index,
    quick: false,
    problems: [],
    notChecked: [],
    rows: 270,
    shards: 1,
    sample: { passages: 5, equal: 5, largestDistance: 0 },
    analysed: null,
  });
});

test('verify without the model says so and checks the rest; with --require-model it fails', async () => {
  const missing = ['verify', index, '--model', 'no-such-model'];
  const { code, stdout, stderr } = await runTrawl(missing);
  assert.deepEqual([code, stdout], [0, `${index}: intact\n`]);
  assert.match(stderr, /passages and vectors belong together was not checked: Model "no-such-model" not found/);
  const { notChecked, sample } = jsonOf<{ notChecked: string[]; sample: null }>(await runTrawl([...missing, '--json']));
  assert.deepEqual([notChecked.length, sample], [1, null]);
  const required = await runTrawl([...missing, '--require-model']);
  assert.deepEqual([required.code, required.stdout], [EXIT.failed, '']);
  assert.match(required.stderr, /\[MODEL_NOT_FOUND\]/);
  // Without a sample no model is needed.
  assert.equal((await runTrawl([...missing, '--require-model', '--sample', '0'])).code, 0);
  assert.equal((await runTrawl([...missing, '--require-model', '--quick'])).code, 0);
});

test('verify --quick checks manifests, sizes and headers, and says that contents were not checked', async (t) => {
  const copy = await copyOfIndex(t);
  flipByte(join(copy, VECTORS), 5_000);
  const { code, stdout } = await runTrawl(['verify', copy, '--quick']);
  assert.deepEqual(
    [code, stdout],
    [0, `${copy}: manifests, sizes and headers are intact; contents were not checked (--quick)\n`],
  );
  flipByte(join(copy, VECTORS), 0);
  const damaged = await runTrawl(['verify', copy, '--quick']);
  assert.equal(damaged.code, EXIT.problems);
  assert.match(damaged.stdout, /vectors\.faiss: begins with "HxFI"/);
});

test('verify finds a flipped byte in the vectors, and names the file', async (t) => {
  const copy = await copyOfIndex(t);
  flipByte(join(copy, VECTORS), 5_000);
  const { code, stdout } = await runTrawl(['verify', copy]);
  assert.equal(code, EXIT.problems);
  assert.match(
    stdout,
    /copy\/shard-00000\/vectors\.faiss: sha256 is [0-9a-f]{64}, the manifest says [0-9a-f]{64}\. Copy the file again/,
  );
  if (loadKernel().ok) assert.match(stdout, /codes\.i8: row \d+: .*bound/, 'the codes do not bound that row any more');
});

test('verify finds a flipped byte in the codes, and names the file', async (t) => {
  if (!loadKernel().ok) return t.skip('the native engine is not available');
  const copy = await copyOfIndex(t);
  flipByte(join(copy, CODES), 5_000);
  const { code, stdout } = await runTrawl(['verify', copy]);
  assert.equal(code, EXIT.problems);
  assert.match(stdout, /codes\.i8: sha256 is/);
});

test('verify finds a flipped byte in a passage, and names the file', async (t) => {
  const copy = await copyOfIndex(t);
  const bytes = readFileSync(join(copy, PASSAGES));
  // SQLite may have left an old copy of the text in a page's unused space, so all of them are changed.
  const text = 'Golden Gate Bridge is';
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) bytes[at]! ^= 1;
  writeFileSync(join(copy, PASSAGES), bytes);
  const ended = await runTrawl(['verify', copy, '--json']);
  assert.equal(ended.code, EXIT.problems);
  const { problems } = JSON.parse(ended.stdout) as { problems: { file: string; message: string }[] };
  assert.equal(problems[0]!.file, join(copy, PASSAGES));
  assert.ok(problems.every(({ message }) => message.startsWith(`${join(copy, PASSAGES)}: `)));
});

test('verify finds any damaged page of the passage file, and names the file', async (t) => {
  const copy = await copyOfIndex(t);
  const whole = readFileSync(join(copy, PASSAGES));
  for (let page = 1; page < whole.length / 4096; page += 3) {
    const bytes = Buffer.from(whole);
    bytes.fill(0xff, page * 4096, page * 4096 + 64);
    writeFileSync(join(copy, PASSAGES), bytes);
    const { code, stdout, stderr } = await runTrawl(['verify', copy, '--quiet']);
    // If the tables cannot be opened, the index is refused, as by every command.
    assert.ok(code === EXIT.problems || code === EXIT.failed, `page ${page}: ${code}`);
    assert.match(code === EXIT.problems ? stdout : stderr, /copy\/shard-00000\/passages\.sqlite: /);
  }
});

test('verify names a row that is not finite', async (t) => {
  const copy = await copyOfIndex(t);
  const bytes = readFileSync(join(copy, VECTORS));
  const { dimension } = JSON.parse(readFileSync(join(copy, 'manifest.json'), 'utf8')) as { dimension: number };
  bytes.writeFloatLE(Number.NaN, 45 + 4 * (7 * dimension + 3));
  writeFileSync(join(copy, VECTORS), bytes);
  const { code, stdout } = await runTrawl(['verify', copy]);
  assert.equal(code, EXIT.problems);
  assert.match(stdout, /row 7 has NaN in column 3; vectors must be finite/);
});

for (const command of [['verify'], ['inspect'], ['search', 'a query'], ['serve', '--port', '0']]) {
  test(`${command[0]} refuses an index with a truncated, missing or foreign file, and names it`, async (t) => {
    const [name, ...rest] = command;
    const run = async (copy: string): Promise<string> => {
      const { code, stdout, stderr } = await runTrawl([name!, copy, ...rest]);
      // For verify a damaged file is a finding, not a failure.
      if (name === 'verify') {
        assert.equal(code, EXIT.problems);
        return stdout;
      }
      assert.deepEqual([code, stdout], [EXIT.failed, '']);
      return stderr;
    };
    const truncated = await copyOfIndex(t);
    truncateSync(join(truncated, VECTORS), 1_000);
    assert.match(await run(truncated), /vectors\.faiss: has 1000 bytes, but the manifest says \d+/);
    const missing = await copyOfIndex(t);
    rmSync(join(missing, PASSAGES));
    assert.match(await run(missing), /passages\.sqlite.*cannot be read/);
    const foreign = await copyOfIndex(t);
    writeFileSync(join(foreign, PASSAGES), 'This is a text file and no database.'.repeat(1_000));
    assert.match(await run(foreign), /passages\.sqlite: is not a SQLite file/);
    const garbled = await copyOfIndex(t);
    writeFileSync(join(garbled, 'manifest.json'), '{"format": "trawl-index"');
    assert.match(await run(garbled), /manifest\.json.*not valid JSON/);
  });
}

test('doctor names the instruction sets of searches by their number of queries, where there are two', () => {
  const chosen = { few: 'avx512-vnni', many: 'amx', codesFrom: 96, prefiltersFrom: -1 };
  assert.deepEqual(
    chosenLines(chosen).map((line) => line.trim()),
    ['avx512-vnni; amx over codes from 96 queries at once, over prefilters never'],
  );
  assert.deepEqual(chosenLines({ ...chosen, few: 'amx' }), []);
});

test('doctor names the instruction sets of encoders: with AMX two, else the fastest', () => {
  const sets = (...available: string[]) =>
    ['amx', 'avx512-vnni', 'portable'].map((name) => ({ name, available: available.includes(name), reason: 'why' }));
  const [first, ...others] = encoderLines('int8', sets('amx', 'avx512-vnni', 'portable'));
  assert.match(first!, /models in int8 use amx, or avx512-vnni where that is faster$/);
  assert.equal(others.length, 3);
  const [without, amx] = encoderLines('int8', sets('avx512-vnni', 'portable'));
  assert.match(without!, /models in int8 use avx512-vnni$/);
  assert.match(amx!, /amx +no +why/);
});

test('doctor prints the facts of the machine as text and as JSON', async () => {
  const { code, stdout, stderr } = await runTrawl(['doctor']);
  assert.deepEqual([code, stderr], [0, '']);
  for (const name of ['trawl', 'processor', 'memory', 'search', 'onnxruntime', 'SQLite', 'models']) {
    assert.match(stdout, new RegExp(`^${name} +\\S`, 'm'));
  }
  const facts = jsonOf<Record<string, unknown>>(await runTrawl(['doctor', '--json']));
  assert.equal(facts.trawl, packageVersion);
  assert.equal(facts.node, process.version);
  assert.ok(Number(facts.cores) >= 1 && Number(facts.memoryBytes) > Number(facts.freeMemoryBytes));
  assert.ok((facts.models as string[]).includes('token-average-256'));
  assert.ok((facts.executionProviders as string[]).includes('cpu'));
  assert.ok(Array.isArray(facts.instructionSets));
});
