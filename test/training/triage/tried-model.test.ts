import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { FileLock } from '../../../src/base/system/file-lock.ts';
import type { ModelOverrides } from '../../../src/encoder/model/model-overrides.ts';
import { openTriedModel, type TriedModel } from '../../../training/triage/tried-model.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { tinyCheckpoint } from '../../helpers/tiny-checkpoint.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

interface Opening {
  /** The folder of the checkpoint. */
  readonly source: string;
  readonly work: string;
  readonly events: string[];
  open(signal?: AbortSignal): Promise<TriedModel>;
}

/** Opens one checkpoint as often as wanted; `events` has what the runs report. */
async function checkpoint(
  t: TestContext,
  overrides: ModelOverrides = {},
  files: Readonly<Record<string, Buffer>> = tinyCheckpoint(),
): Promise<Opening> {
  const folder = await tempFolder(t);
  const source = join(folder, 'checkpoint');
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(source, name)), { recursive: true });
    writeFileSync(join(source, name), content);
  }
  const work = join(folder, 'work');
  const events: string[] = [];
  return {
    source,
    work,
    events,
    open: async (signal = new AbortController().signal) => {
      const model = await openTriedModel(source, {
        work,
        encoder: { workers: 1, overrides },
        onImport: () => events.push('import'),
        onWait: () => events.push('wait'),
        signal,
      });
      t.after(() => model.close());
      return model;
    },
  };
}

test('two runs share an imported checkpoint, and the last one removes it', async (t) => {
  const { work, events, open } = await checkpoint(t);
  const [first, second] = await Promise.all([open(), open()]);
  assert.equal(events.filter((event) => event === 'import').length, 1);
  const [name] = readdirSync(work).filter((entry) => /^model-[0-9a-f]{16}$/.test(entry));
  assert.ok(name !== undefined);
  await first.removeImported();
  assert.ok(existsSync(join(work, name)), 'the second run still has it open');
  const third = await open();
  assert.equal(third.encoder.identity.sha256, second.encoder.identity.sha256);
  await second.close();
  await third.removeImported();
  assert.ok(!existsSync(work));
  assert.equal(events.filter((event) => event === 'import').length, 1);
});

test('what a trainer writes beside the model does not make it another checkpoint', async (t) => {
  const { source, events, open } = await checkpoint(t);
  await (await open()).close();
  writeFileSync(join(source, 'trainer_state.json'), '{"epoch": 1}');
  mkdirSync(join(source, 'checkpoint-500'));
  writeFileSync(join(source, 'checkpoint-500', 'model.safetensors'), 'other weights');
  await (await open()).close();
  assert.deepEqual(events, ['import']);
  rmSync(join(source, 'config.json'));
  await assert.rejects(open(), trawlError('MODEL_INVALID', /has no config\.json/));
  assert.deepEqual(events, ['import']);
});

test('a run that waits for the import of another one can be stopped', async (t) => {
  const { work, events, open } = await checkpoint(t);
  const first = await open();
  const [name] = readdirSync(work).filter((entry) => /^model-[0-9a-f]{16}$/.test(entry));
  await first.close();
  const importing = FileLock.acquire(join(work, `${name}.use.lock`), 'exclusive');
  t.after(() => importing?.release());
  const stop = new AbortController();
  const waiting = assert.rejects(open(stop.signal), trawlError('CANCELLED'));
  while (!events.includes('wait')) await new Promise((resolve) => setTimeout(resolve, 10));
  stop.abort();
  await waiting;
});

test('a checkpoint with the head of another task is tried as an encoder if its pooling is given', async (t) => {
  const { 'modules.json': _, '1_Pooling/config.json': __, ...files } = tinyCheckpoint();
  const config = JSON.parse(files['config.json']!.toString());
  const named = {
    ...files,
    'config.json': Buffer.from(JSON.stringify({ ...config, architectures: ['BertForTokenClassification'] })),
  };
  const refused = await checkpoint(t, {}, named);
  await assert.rejects(refused.open(), trawlError('MODEL_INVALID', /--pooling/));
  const { open } = await checkpoint(t, { pooling: 'cls' }, named);
  assert.equal((await open()).encoder.identity.pooling, 'cls');
});
