import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../../src/base/package-root.ts';
import type { IterationSummary } from '../../training/iteration/iteration-work.ts';
import { fileFolder, jsonOf, runTrawl, SAMPLE, SAMPLE_PASSAGES, serveIndex } from '../cli/run-trawl.ts';
import { runTorchPeer, withoutTorch } from '../helpers/peers.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { assertOwnAnswers, searchLoad, searchServer } from '../training/iteration/search-load.ts';

const folder = await fileFolder();
const file = (name: string): string => join(folder, name);

interface Line {
  readonly id: string;
  readonly question: string;
  readonly query?: string;
  readonly text?: string;
  readonly gold_ids: readonly string[];
}

test('two iterations with a trainer find more of held-out questions each time, while a server answers', {
  skip: withoutTorch(),
}, async (t) => {
  const [heldOut, training] = writeQuestions();
  // Random weights: what is found at first is found by chance and by equal words.
  await train('checkpoint-0', null, null);
  await trawl('model', 'add', file('checkpoint-0'), '--out', file('model-0'), '--precision', 'float32');
  const start = file('start');
  await trawl('index', SAMPLE_PASSAGES, '--model', file('model-0'), '--out', start);
  const iterate = async (checkpoint: string, ...args: string[]): Promise<IterationSummary> => {
    const inputs = ['--root', file('loop'), '--corpus', SAMPLE_PASSAGES, '--eval', heldOut, '--json'];
    return jsonOf(await runTrawl(['iterate', file(checkpoint), ...inputs, ...args]));
  };
  const current = join(file('loop'), 'current');
  const indexes = [start];
  let url = '';
  let load: ReturnType<typeof searchLoad> | undefined;
  for (const [i, share] of [
    [1, 3],
    [2, 1.5],
  ] as const) {
    const rows = file(`rows-${i}.jsonl`);
    const mined = ['--queries', training, '--exclude-questions', heldOut, '--format', 'flagembedding'];
    await trawl('mine', indexes.at(-1)!, ...mined, '--out', rows, '--num-negatives', '4');
    const lines = readFileSync(rows, 'utf8').trimEnd().split('\n');
    writeFileSync(rows, `${lines.slice(0, lines.length / share).join('\n')}\n`);
    await train(`checkpoint-${i}`, `checkpoint-${i - 1}`, rows);
    if (load === undefined) {
      await iterate('checkpoint-1', '--from', start, '--until', 'index');
      ({ url } = await serveIndex(t, current));
      load = searchLoad(url);
    }
    const { state, index, generation, measures } = await iterate(`checkpoint-${i}`, '--server', url);
    assert.equal(state, 'published');
    const { before, now } = measures!;
    t.diagnostic(`recall@10 ${before['recall@10']!.toFixed(3)} → ${now['recall@10']!.toFixed(3)}`);
    assert.ok(now['recall@10']! > before['recall@10']! + 0.05, JSON.stringify(measures));
    assert.equal((await searchServer(url)).generation, generation);
    indexes.push(index);
  }
  const replies = await load!.stop();
  t.diagnostic(`${replies.length} requests, none failed`);
  await assertOwnAnswers(replies, indexes);
});

/** Held-out questions of the sample corpus; for training its sub-queries of other questions, and words of sentences of its passages. */
function writeQuestions(): [string, string] {
  const subQueries = linesOf(join(SAMPLE, 'sub-queries.jsonl'));
  const trained = new Set(subQueries.map(({ question }) => question));
  const heldOut = linesOf(join(SAMPLE, 'questions.jsonl')).filter(({ question }) => !trained.has(question));
  assert.ok(heldOut.length > 50);
  const random = seededRandom(1);
  const training = [
    ...linesOf(SAMPLE_PASSAGES).flatMap(({ id, text }) =>
      text!.split(/(?<=[.!?])\s+/).flatMap((sentence, i) =>
        [0, 1].map((copy) => ({
          id: `${id}-${i}-${copy}`,
          question: sentence
            .split(' ')
            .filter(() => random() < 0.6)
            .join(' '),
          gold_ids: [id],
        })),
      ),
    ),
    ...subQueries.map(({ id, query, gold_ids }) => ({ id, question: query!, gold_ids })),
  ].filter(({ question }) => question.split(' ').length > 2);
  const order = training.map((line) => ({ line, at: random() })).sort((a, b) => a.at - b.at);
  return [
    written('held-out.jsonl', heldOut),
    written(
      'training.jsonl',
      order.map(({ line }) => line),
    ),
  ];
}

function linesOf(path: string): Line[] {
  return readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
}

function written(name: string, lines: readonly object[]): string {
  writeFileSync(file(name), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  return file(name);
}

async function trawl(...args: string[]): Promise<void> {
  const { code, stderr } = await runTrawl([...args, '--quiet']);
  assert.equal(code, 0, stderr);
}

async function train(to: string, from: string | null, rows: string | null): Promise<void> {
  await runTorchPeer('iterate_train.py', {
    tokenizer: join(packageRoot, 'models', 'token-average-256', 'tokenizer.json'),
    to: file(to),
    from: from === null ? null : file(from),
    rows,
    epochs: 1,
  });
}
