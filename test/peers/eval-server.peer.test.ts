import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { baselinePython } from '../../bench/baselines.ts';
import { startBaseline } from '../../bench/serve/serve-engine.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { fileFolder, jsonOf, runTrawl, SAMPLE, SAMPLE_PASSAGES } from '../cli/run-trawl.ts';
import { importedMiniLm } from '../helpers/minilm.ts';
import { miniLmFolder, peerCache, withoutMiniLm } from '../helpers/peers.ts';

const python = baselinePython(peerCache(), 'serve');
const skip =
  withoutMiniLm() || (python === undefined ? 'the Python server is not installed: trawl bench baselines serve' : false);
const miniLm = importedMiniLm();
const cwd = await fileFolder();

interface Report {
  readonly metrics: Readonly<Record<string, number>>;
  readonly failed?: number;
  readonly server?: { readonly matchedBy: string; readonly latencyMs: { readonly p50: number } };
}

test('a Python server like Search-R1’s has the metrics of the index whose vectors it searches', { skip }, async (t) => {
  const index = join(cwd, 'index');
  const built = await runTrawl(['index', SAMPLE_PASSAGES, '--out', index, '--model', await miniLm(), '--quiet']);
  assert.equal(built.code, 0, built.stderr);
  const asked = ['--queries', join(SAMPLE, 'questions.jsonl'), '--cutoffs', '1,5,10', '--json'];
  const own = jsonOf<Report>(await runTrawl(['eval', index, ...asked]));
  const server = await startBaseline('search-r1', {
    python: python!,
    threads: 2,
    model: miniLmFolder()!,
    vectors: openIndexDirectory(index).source!.shards[0]!.segments[0]!.path,
    corpus: SAMPLE_PASSAGES,
    prefix: '',
    maxTokens: 256,
    topk: 3,
  });
  t.after(() => server.close());
  const url = `http://127.0.0.1:${server.port}`;
  const report = jsonOf<Report>(await runTrawl(['eval', '--url', url, ...asked, '--concurrency', '2']));
  assert.deepEqual([report.failed, report.server!.matchedBy], [0, 'id']);
  assert.ok(report.server!.latencyMs.p50 > 0);
  assert.deepEqual(Object.keys(report.metrics), Object.keys(own.metrics));
  // Their encoders differ in the last bits, by which two passages may change places.
  for (const [name, value] of Object.entries(own.metrics))
    assert.ok(Math.abs(report.metrics[name]! - value) < 0.01, `${name}: ${report.metrics[name]}, not ${value}`);
});
