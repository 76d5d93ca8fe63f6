import assert from 'node:assert/strict';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { EXIT } from '../../cli/program/command.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { transformersModel } from '../encoder/model-fixtures.ts';
import { commitOf } from '../helpers/hub-server.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { tinyCheckpoint } from '../helpers/tiny-checkpoint.ts';
import { hubRuns } from './hub-runs.ts';
import { jsonOf, runTrawl, SAMPLE_PASSAGES } from './run-trawl.ts';

const CHECKPOINT = tinyCheckpoint();
const WEIGHTS = CHECKPOINT['model.safetensors']!;
const REPOSITORY = { name: 'org/tiny', files: CHECKPOINT };

interface Added {
  readonly name: string;
  readonly folder: string;
  readonly dimension: number;
  readonly pooling: string;
  readonly precisions: readonly string[];
  readonly transferredBytes: number;
  readonly source: { readonly kind: string; readonly id: string; readonly revision?: string };
}

async function start(t: TestContext) {
  const runs = await hubRuns(t, REPOSITORY);
  return { ...runs, model: (...args: string[]) => runs.run(['model', ...args]) };
}

/** Only float32, which is the fastest to import. */
const ADD = ['add', 'org/tiny', '--precision', 'float32'];
/** The file that receives the weights during the download. */
const PARTIAL = ['models', '.download', 'org--tiny', 'model.safetensors.partial'];

function writeCheckpoint(folder: string): void {
  for (const [path, content] of Object.entries(CHECKPOINT)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
}

test('a model of the hub can be added, shown, listed and verified, and indexes can be built and searched with it', async (t) => {
  const { hub, cwd, model } = await start(t);
  const added = jsonOf<Added>(await model(...ADD, '--json'));
  assert.deepEqual([added.name, added.dimension, added.pooling, added.precisions[0]], ['tiny', 32, 'mean', 'float32']);
  assert.equal(added.folder, join(cwd, 'models', 'tiny'));
  assert.deepEqual(added.source, { kind: 'hub', id: 'org/tiny', revision: commitOf(REPOSITORY) });
  assert.deepEqual(
    Object.keys(hub.sentOf).filter((path) => /bin|h5|onnx|README/.test(path)),
    [],
  );
  assert.equal(hub.sentBytes, added.transferredBytes);
  assert.deepEqual(readdirSync(join(cwd, 'models')).sort(), ['.download', 'tiny']);
  assert.deepEqual(readdirSync(join(cwd, 'models', '.download')), []);

  assert.equal(jsonOf<Added>(await model('show', 'tiny', '--json')).dimension, 32);
  assert.match((await model('show', 'tiny')).stdout, /source {8}hub org\/tiny@[0-9a-f]{40}\n/);
  const listed = jsonOf<{ name: string }[]>(await model('list', '--json'));
  assert.deepEqual(listed.map(({ name }) => name).sort(), ['tiny', 'token-average-256']);
  assert.match((await model('list')).stdout, /^tiny +bert, 32 dimensions, float32/m);
  assert.match((await model('verify', 'tiny')).stdout, /files are intact/);

  const index = await runTrawl(['index', SAMPLE_PASSAGES, '--model', 'tiny', '--out', 'ix', '--quiet'], { cwd });
  assert.equal(index.code, EXIT.ok, index.stderr);
  const search = await runTrawl(['search', 'ix', 'the length of the bridge', '--k', '3', '--json'], { cwd });
  assert.equal(search.code, EXIT.ok, search.stderr);

  appendFileSync(join(cwd, 'models', 'tiny', 'tokenizer.json'), ' ');
  const damaged = await model('verify', 'tiny', '--json');
  assert.equal(damaged.code, EXIT.problems);
  assert.match((JSON.parse(damaged.stdout) as { problems: string[] }).problems[0]!, /tokenizer\.json has/);
});

test('without a terminal, model add prints what it found and the next command', async (t) => {
  const { model } = await start(t);
  const { code, stdout, stderr } = await model(...ADD);
  assert.equal(code, EXIT.ok, stderr);
  assert.match(stdout, /kind {10}encoder, bert\n {2}dimension {5}32, .*\n {2}pooling {7}mean, normalised\n/);
  assert.match(stderr, /^downloading \d files, [\d.]+ MB\n/);
  assert.match(stderr, /Next: trawl index CORPUS --model tiny --out indexes\/NAME\n$/);
});

test('the same command resumes an interrupted download and transfers only the rest', async (t) => {
  const { hub, cwd, model, halfWay } = await start(t);
  const partial = join(cwd, ...PARTIAL);
  const halted = await halfWay(['model', ...ADD], 'model.safetensors', partial);
  const { code, stdout, stderr } = await halted.end('SIGINT');
  assert.deepEqual([code, stdout], [EXIT.interrupted, '']);
  assert.match(stderr, /trawl: Interrupted\. \[CANCELLED\]\n$/);
  assert.equal(existsSync(join(cwd, 'models', 'tiny')), false);
  const kept = statSync(partial).size;
  assert.ok(kept > 0 && kept < WEIGHTS.length);
  assert.ok(readFileSync(partial).equals(WEIGHTS.subarray(0, kept)));

  const before = hub.sentBytes;
  const added = jsonOf<Added>(await model(...ADD, '--json'));
  assert.equal(hub.sentBytes - before, added.transferredBytes);
  // Small files may not have been complete either.
  const small = Object.entries(CHECKPOINT).reduce(
    (sum, [path, { length }]) => sum + (/json$/.test(path) ? length : 0),
    0,
  );
  const rest = WEIGHTS.length - kept;
  assert.ok(added.transferredBytes >= rest && added.transferredBytes <= rest + small, `${added.transferredBytes}`);
  assert.deepEqual(
    hub.requests
      .filter(({ cdn, range }) => cdn && range !== undefined)
      .map(({ range }) => range)
      .includes(`bytes=${kept}-`),
    true,
  );
});

test('while a model is added, a second command for it or its download is refused; a killed command leaves no lock', async (t) => {
  const { hub, cwd, model, halfWay } = await start(t);
  const halted = await halfWay(['model', ...ADD], 'model.safetensors', join(cwd, ...PARTIAL));
  const second = await model(...ADD);
  assert.equal(second.code, EXIT.failed);
  assert.match(second.stderr, /Another `trawl model add` is working on .*models\/tiny\..*\[MODEL_LOCKED\]/);
  // It would remove the checkpoint while the first command reads it.
  const otherName = await model(...ADD, '--name', 'other');
  assert.match(otherName.stderr, /Another `trawl model add` is working on .*org--tiny\..*\[MODEL_LOCKED\]/);
  assert.equal((await halted.end('SIGKILL')).signal, 'SIGKILL');
  const before = hub.sentOf['model.safetensors']!;
  assert.equal((await model(...ADD)).code, EXIT.ok);
  assert.ok(hub.sentOf['model.safetensors']! - before < WEIGHTS.length);
});

test('model add continues a download after a broken connection', async (t) => {
  const { hub, model } = await start(t);
  hub.behaviour['model.safetensors'] = { breakAfter: 3_000_000, breaks: 1 };
  const { code, stderr } = await model(...ADD);
  assert.equal(code, EXIT.ok, stderr);
  assert.match(stderr, /model\.safetensors: .*retrying in/);
  assert.ok(hub.requests.some(({ cdn, range }) => cdn && /^bytes=[1-9]/.test(range ?? '')));
});

test('a model of the same name is replaced only with --force, and not by a failed import', async (t) => {
  const { hub, cwd, model } = await start(t);
  assert.equal((await model(...ADD)).code, EXIT.ok);
  hub.requests.length = 0;
  const again = await model(...ADD);
  assert.deepEqual([again.code, hub.requests.length], [EXIT.failed, 0]);
  assert.match(again.stderr, /models\/tiny already exists.*--force\. \[MODEL_EXISTS\]/);

  const before = readFileSync(join(cwd, 'models', 'tiny', 'trawl-model.json'), 'utf8');
  hub.replace({ ...REPOSITORY, files: { ...CHECKPOINT, 'model.safetensors': Buffer.alloc(2000, 7) } });
  const failing = await model(...ADD, '--force');
  assert.equal(failing.code, EXIT.failed);
  assert.match(failing.stderr, /\[MODEL_INVALID\]/);
  assert.equal(readFileSync(join(cwd, 'models', 'tiny', 'trawl-model.json'), 'utf8'), before);
  assert.equal((await model('verify', 'tiny')).code, EXIT.ok);

  hub.replace({ ...REPOSITORY, files: tinyCheckpoint(2) });
  assert.equal((await model(...ADD, '--force')).code, EXIT.ok);
  assert.notEqual(readFileSync(join(cwd, 'models', 'tiny', 'trawl-model.json'), 'utf8'), before);
  assert.equal((await model('verify', 'tiny')).code, EXIT.ok);
  assert.deepEqual(readdirSync(join(cwd, 'models', '.download')), []);

  mkdirSync(join(cwd, 'models', 'notes'));
  const foreign = await model(...ADD, '--name', 'notes', '--force');
  assert.match(foreign.stderr, /was not made by this command, so it is not replaced.*\[MODEL_EXISTS\]/);
});

test('--keep-source keeps the checkpoint, and a second import needs no transfer', async (t) => {
  const { hub, cwd, model } = await start(t);
  assert.equal((await model(...ADD, '--keep-source')).code, EXIT.ok);
  assert.ok(existsSync(join(cwd, 'models', '.download', 'org--tiny', 'model.safetensors')));
  hub.sentBytes = 0;
  assert.equal((await model(...ADD, '--name', 'second')).code, EXIT.ok);
  assert.equal(hub.sentBytes, 0);
});

test('a folder is imported without requests to the hub, under --name and --out', async (t) => {
  const { hub, cwd } = await start(t);
  const env = { HF_HUB_OFFLINE: '1', HF_ENDPOINT: hub.endpoint };
  writeCheckpoint(join(cwd, 'mine'));
  const run = (...args: string[]) =>
    runTrawl(['model', 'add', ...args, '--precision', 'float32', '--json'], { cwd, env });
  assert.equal(jsonOf<Added>(await run('./mine')).folder, join(cwd, 'models', 'mine'));
  const named = jsonOf<Added>(await run('mine', '--name', 'other'));
  assert.deepEqual([named.name, named.source], ['other', { kind: 'folder', id: 'mine' }]);
  assert.equal(jsonOf<Added>(await run('mine', '--out', 'elsewhere/place')).folder, join(cwd, 'elsewhere', 'place'));
  const offline = await run('org/tiny');
  assert.match(offline.stderr, /HF_HUB_OFFLINE.*is set/);
  assert.equal(hub.requests.length, 0);
  const itself = await run('mine', '--out', 'mine');
  assert.match(itself.stderr, /MODEL_EXISTS/);
});

test('a downloaded file with a wrong checksum is refused, and no model is made', async (t) => {
  const { hub, cwd, model } = await start(t);
  hub.behaviour['model.safetensors'] = { content: Buffer.alloc(WEIGHTS.length) };
  const { code, stderr } = await model(...ADD, '--json');
  assert.equal(code, EXIT.failed);
  assert.equal((JSON.parse(stderr) as { error: { code: string } }).error.code, 'DOWNLOAD_CORRUPT');
  assert.equal(existsSync(join(cwd, 'models', 'tiny')), false);
});

test('model remove removes only models that model add made', async (t) => {
  const { cwd, model } = await start(t);
  assert.equal((await model(...ADD)).code, EXIT.ok);
  const tokenizer = join(cwd, 'models', 'tiny', 'tokenizer.json');
  writeFileSync(tokenizer, Buffer.alloc(statSync(tokenizer).size, ' '));
  const listed = await model('list');
  assert.match(listed.stdout, /^tiny +cannot be used: .*tokenizer\.json differs from the checksum/m);
  assert.equal((await model('remove', 'tiny')).code, EXIT.ok);
  assert.equal(existsSync(join(cwd, 'models', 'tiny')), false);
  // A copy, so that nothing is lost if the command removes it by mistake.
  cpSync(join(packageRoot, 'models', 'token-average-256'), join(cwd, 'models', 'copy'), { recursive: true });
  const own = await model('remove', 'copy');
  assert.equal(own.code, EXIT.usage);
  assert.match(own.stderr, /was not made by trawl model add/);
  assert.ok(existsSync(join(cwd, 'models', 'copy', 'model.onnx')));
  assert.match((await model('remove', 'tiny')).stderr, /MODEL_NOT_FOUND/);
});

test('model remove removes a model whose graph is missing', async (t) => {
  const { cwd, model } = await start(t);
  writeCheckpoint(join(cwd, 'mine'));
  assert.equal((await model('add', './mine', '--precision', 'float32')).code, EXIT.ok);
  rmSync(join(cwd, 'models', 'mine', 'model.onnx'));
  assert.match((await model('show', 'mine')).stderr, /model\.onnx is missing/);
  const { code, stderr } = await model('remove', 'mine');
  assert.equal(code, EXIT.ok, stderr);
  assert.equal(existsSync(join(cwd, 'models', 'mine')), false);
});

test("a folder of huggingface_hub's cache has the name of its repository, by which its prefixes are known", async (t) => {
  const { cwd, model } = await start(t);
  const repository = join(cwd, 'hub', 'models--intfloat--e5-tiny');
  const revision = '0123456789abcdef0123456789abcdef01234567';
  writeCheckpoint(join(repository, 'snapshots', revision));
  mkdirSync(join(repository, 'refs'));
  writeFileSync(join(repository, 'refs', 'main'), revision);
  for (const folder of [repository, join(repository, 'snapshots', revision)]) {
    const added = jsonOf<Added & { readonly prefixes: object }>(
      await model('add', folder, '--precision', 'float32', '--force', '--json'),
    );
    assert.equal(added.folder, join(cwd, 'models', 'e5-tiny'));
    assert.deepEqual(added.source, { kind: 'folder', id: 'intfloat/e5-tiny', revision });
    assert.deepEqual(added.prefixes, { query: 'query: ', passage: 'passage: ' });
  }
});

test('a model that gives no vectors is refused before its weights are downloaded', async (t) => {
  const { hub, model } = await start(t);
  const clip = { model_type: 'clip', architectures: ['CLIPModel'], vision_config: {} };
  hub.replace({ ...REPOSITORY, files: { ...CHECKPOINT, 'config.json': Buffer.from(JSON.stringify(clip)) } });
  const { code, stderr } = await model(...ADD);
  assert.equal(code, EXIT.failed);
  assert.match(stderr, /is a vision model, which takes images.*\[MODEL_INVALID\]/);
  assert.deepEqual([hub.sentOf['model.safetensors'], hub.sentOf['onnx/model.onnx']], [undefined, undefined]);
});

test('a token classifier of the hub is refused before its weights are downloaded, and a pooling that its folder contradicts', async (t) => {
  const { hub, model } = await start(t);
  const config = JSON.parse(CHECKPOINT['config.json']!.toString()) as object;
  const ner = { ...config, architectures: ['BertForTokenClassification'] };
  const { 'modules.json': _, '1_Pooling/config.json': __, 'onnx/model.onnx': ___, ...plain } = CHECKPOINT;
  hub.replace({ ...REPOSITORY, files: { ...plain, 'config.json': Buffer.from(JSON.stringify(ner)) } });
  const refused = await model(...ADD);
  assert.equal(refused.code, EXIT.failed);
  assert.match(refused.stderr, /is a token classifier.*An encoder would fit.*--pooling mean.*\[MODEL_INVALID\]/);
  hub.replace(REPOSITORY);
  const contradicted = await model(...ADD, '--pooling', 'cls');
  assert.equal(contradicted.code, EXIT.failed);
  assert.match(
    contradicted.stderr,
    /--pooling is cls, but .*1_Pooling.config\.json states the pooling mean.*CONFIG_INV/,
  );
  assert.deepEqual([hub.sentOf['model.safetensors'], hub.sentOf['onnx/model.onnx']], [undefined, undefined]);
});

test('model add says that a pooling is assumed; with --pooling it is stated, and model show says so', async (t) => {
  const { hub, model } = await start(t);
  const { 'modules.json': _, '1_Pooling/config.json': __, ...plain } = CHECKPOINT;
  hub.replace({ ...REPOSITORY, files: plain });
  const assumed = await model(...ADD);
  assert.match(assumed.stdout, /pooling {7}mean, normalised \(assumed: the checkpoint states none\)/);
  assert.match(
    assumed.stderr,
    /the pooling mean is assumed: .*State it with --pooling \(mean, cls or last\), and --force/,
  );
  const stated = await model(...ADD, '--pooling', 'cls', '--force');
  assert.doesNotMatch(stated.stderr, /assumed/);
  assert.match((await model('show', 'tiny')).stdout, /pooling {7}cls, normalised \(stated with --pooling\)/);
  const shown = jsonOf<Added & { readonly poolingFrom: string }>(await model('show', 'tiny', '--json'));
  assert.deepEqual([shown.pooling, shown.poolingFrom], ['cls', 'option']);
});

test('of an architecture that the import does not know, the ONNX graph is downloaded in place of the safetensors files', async (t) => {
  const { hub, model } = await start(t);
  const folder = await transformersModel(t, 'exported', {
    'config.json': {
      model_type: 'mpnet',
      architectures: ['MPNetModel'],
      hidden_size: 10,
      max_position_embeddings: 512,
    },
  });
  const paths = ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'onnx/model.onnx'];
  const files = Object.fromEntries(paths.map((path) => [path, readFileSync(join(folder, path))]));
  hub.replace({ ...REPOSITORY, files: { ...files, 'model.safetensors': WEIGHTS } });
  const added = jsonOf<Added>(await model(...ADD, '--json'));
  assert.deepEqual([added.dimension, added.precisions], [10, ['float32']]);
  assert.equal(hub.sentOf['model.safetensors'], undefined);
});

for (const [args, message] of [
  [[], /<action> is missing/],
  [['ad', 'x'], /Unknown action trawl model ad; expected one of add, list/],
  [['add'], /needs a folder or a hub id/],
  [['show'], /needs a model/],
  [['list', 'x'], /takes no further argument/],
  [['add', 'plain-name'], /neither an existing folder nor a hub id/],
  [['add', 'org/tiny@'], /neither an existing folder/],
  [['add', 'a/b/c'], /not a repository name/],
  [['add', 'org/tiny', '--name', '../x'], /cannot be the name of a model/],
  [['add', 'org/tiny', '--name', 'a/b'], /cannot be the name of a model/],
  [['add', 'org/tiny', '--precision', 'int4'], /--precision is "int4"; expected some of/],
  [['add', 'org/tiny', '--pooling', 'max'], /--pooling.*mean, cls, last/],
  [['show', 'x', '--pooling', 'mean'], /--pooling is an option of trawl model add/],
  [['show', 'x', '--force'], /--force is an option of trawl model add/],
] as const) {
  test(`trawl model ${args.join(' ')} is a usage error`, async (t) => {
    const cwd = await tempFolder(t);
    const { code, stderr } = await runTrawl(['model', ...args], { cwd });
    assert.equal(code, EXIT.usage);
    assert.match(stderr, message);
  });
}

test('a missing folder is not looked up on the hub', async (t) => {
  const { hub, cwd, model } = await start(t);
  const { code, stderr } = await model('add', './org/tiny');
  assert.equal(code, EXIT.failed);
  assert.match(stderr, /Cannot open the folder .*org\/tiny: it does not exist\. Expected .*\[MODEL_NOT_FOUND\]/);
  writeFileSync(join(cwd, 'file'), '');
  assert.match(
    (await model('add', './file')).stderr,
    /^trawl: Cannot open the folder \S+file: it is a file\. Expected /,
  );
  assert.equal(hub.requests.length, 0);
});
