import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { TrawlError } from '../../../src/base/errors.ts';
import { ResumableOutput } from '../../../src/base/system/resumable-output.ts';
import { type CandidateItem, readCandidates } from '../../../training/agentic-r/candidates-file.ts';
import {
  CANDIDATE_QUERY_FORMS,
  type CandidateCounts,
  type CandidateQueryForm,
  makeCandidates,
  QWEN_ASSISTANT_MARKER,
} from '../../../training/agentic-r/make-candidates.ts';
import { readTrajectories } from '../../../training/trajectories/read-trajectories.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { step1Item } from '../trajectories/step1-item.ts';

interface Made {
  readonly items: readonly CandidateItem[];
  readonly counts: CandidateCounts;
  readonly retriever: FakeRetriever;
}

interface MakeOptions {
  readonly retriever?: FakeRetriever;
  readonly form?: CandidateQueryForm;
  readonly k?: number;
  readonly out?: string;
}

async function make(
  t: TestContext,
  items: readonly object[],
  { retriever = new FakeRetriever(), form = 'searched', k = 3, out }: MakeOptions = {},
): Promise<Made> {
  const folder = await tempFolder(t);
  const input = join(folder, 'hotpotqa.json');
  await writeFile(input, JSON.stringify(items));
  const path = out ?? join(folder, 'candidates.json');
  const output = await ResumableOutput.open<CandidateCounts>([path], {
    settings: {},
    restart: false,
    replaces: false,
  });
  try {
    const counts = await makeCandidates({
      retriever,
      form,
      k,
      ranking: {},
      assistantMarker: QWEN_ASSISTANT_MARKER,
      trajectories: (skip) => readTrajectories(input, { skip }),
      output,
    });
    await output.finish(counts, { counts });
    return { items: JSON.parse(await readFile(path, 'utf8')) as CandidateItem[], counts, retriever };
  } finally {
    await output.close();
  }
}

test('every round gets its candidates as row numbers, and its context ends with its search', async (t) => {
  const { items, counts } = await make(t, [
    step1Item({
      id: 'train_3',
      question: 'Q?',
      answers: ['A'],
      searches: [{ query: 'one', shown: ['1'] }, { query: 'two' }],
    }),
  ]);
  const [item] = items;
  assert.deepEqual(Object.keys(item!), ['id', 'question', 'golden_answers', 'output', 'trajectory']);
  assert.equal(item!.output['retrieval_results'], undefined);
  assert.match(String(item!.output['prompt']), /<answer>x<\/answer>$/);
  assert.deepEqual(
    item!.trajectory.map(({ round_index: round, current_query: query }) => [round, query]),
    [
      [1, 'one'],
      [2, 'two'],
    ],
  );
  assert.equal(item!.trajectory[0]!.reasoning_context, 'thought 1<search> one </search>');
  assert.equal(
    item!.trajectory[1]!.reasoning_context,
    'thought 1<search> one </search><information>…</information>thought 2<search> two </search>',
  );
  for (const { candidate_passage_ids: rows } of item!.trajectory) {
    assert.equal(rows.length, 3);
    assert.ok(rows.every((row) => Number.isInteger(row) && row >= 0 && row < 5));
  }
  assert.deepEqual([counts.read, counts.written, counts.rounds], [1, 1, 2]);
});

test('each query form searches its own text', async (t) => {
  const searched: Record<string, unknown> = {};
  for (const form of CANDIDATE_QUERY_FORMS) {
    const items = [step1Item({ question: 'Q?', searches: [{ query: 'sub', searchedText: 'Q? [SEP] sub' }] })];
    const { retriever } = await make(t, items, { form });
    searched[form] = retriever.calls[0]!.queries[0];
  }
  assert.deepEqual(searched, {
    searched: 'Q? [SEP] sub',
    query: 'sub',
    'question-and-query': { question: 'Q?', query: 'sub' },
    question: 'Q?',
  });
});

test('trajectories whose rounds cannot be placed are dropped and counted by reason', async (t) => {
  const { items, counts } = await make(t, [
    step1Item({ id: 'no-search' }),
    step1Item({ id: 'one-tag-more', searches: [{ query: 'a' }], prompt: `${QWEN_ASSISTANT_MARKER}</search></search>` }),
    step1Item({ id: 'only-instructions', searches: [{ query: 'a' }], prompt: '</search>' }),
    step1Item({ id: 'kept', searches: [{ query: 'a' }] }),
  ]);
  assert.deepEqual(
    items.map(({ id }) => id),
    ['kept'],
  );
  assert.deepEqual(counts.dropped, {
    'never-searched': 1,
    'no-question': 0,
    'no-assistant-text': 1,
    'search-tags-differ': 1,
  });
  assert.equal(counts.read, 4);
});

test('trajectories without the agent’s text get empty contexts and are counted', async (t) => {
  const item = step1Item({ searches: [{ query: 'a' }, { query: 'b' }] });
  const { prompt: _, ...output } = item.output;
  const { items, counts } = await make(t, [{ ...item, output }]);
  assert.deepEqual(
    items[0]!.trajectory.map(({ reasoning_context: context }) => context),
    ['', ''],
  );
  assert.equal(counts.withoutText, 1);
});

test('ids that are not row numbers, truncated queries and short lists are counted', async (t) => {
  const { counts } = await make(t, [step1Item({ searches: [{ query: 'a' }, { query: 'x'.repeat(2000) }] })], { k: 20 });
  // Of the five fake documents rows 0, 3 and 4 have their row as id.
  assert.equal(counts.otherIds, 4);
  assert.equal(counts.truncated, 1);
  assert.equal(counts.short, 2);
});

test('no trajectories give an empty array that is read back', async (t) => {
  const out = join(await tempFolder(t), 'empty.json');
  const { items, retriever } = await make(t, [], { out });
  assert.deepEqual(items, []);
  assert.equal(retriever.calls.length, 0);
  for await (const item of readCandidates(out)) assert.fail(item.id);
});

test('a failure that is not of a query ends the work with its trajectory, and it resumes to the same bytes', async (t) => {
  const items = Array.from({ length: 700 }, (_, i) =>
    step1Item({ id: `train_${i}`, searches: [{ query: `a ${i}` }, { query: `b ${i}` }] }),
  );
  const folder = await tempFolder(t);
  const whole = join(folder, 'whole.json');
  await make(t, items, { out: whole });
  const out = join(folder, 'resumed.json');
  let calls = 0;
  // Time passes between the batches, so that they have checkpoints.
  let now = 0;
  t.mock.method(performance, 'now', () => (now += 1500));
  const failing = new FakeRetriever({
    before: () => {
      calls += 1;
    },
    outcome: (_, position) =>
      calls === 4 && position === 2
        ? { ok: false, error: new TrawlError('ENCODER_FAILED', 'the thread ended') }
        : undefined,
  });
  await assert.rejects(
    make(t, items, { out, retriever: failing }),
    trawlError('ENCODER_FAILED', /hotpotqa\.json, item 386, search 1: the thread ended The same command resumes there/),
  );
  const retriever = new FakeRetriever();
  const { counts } = await make(t, items, { out, retriever });
  assert.ok(retriever.calls.length < 6, 'finished batches are not searched again');
  assert.deepEqual(await readFile(out), await readFile(whole));
  assert.equal(counts.rounds, 1400);
});

test('a round whose own query cannot be searched has no candidates and is named; the others are searched', async (t) => {
  const items = ['one', 'two', 'three'].map((id) =>
    step1Item({ id, searches: [{ query: `a ${id}` }, { query: `b ${id}` }, { query: `c ${id}` }] }),
  );
  const codes: Readonly<Record<number, 'EMPTY_QUERY' | 'QUERY_TOO_LONG' | 'ENDPOINT_REFUSED'>> = {
    1: 'EMPTY_QUERY',
    5: 'QUERY_TOO_LONG',
    6: 'ENDPOINT_REFUSED',
  };
  const retriever = new FakeRetriever({
    outcome: (_, position) => {
      const code = codes[position];
      return code === undefined ? undefined : { ok: false, error: new TrawlError(code, `Query ${position} is bad.`) };
    },
  });
  const { items: made, counts } = await make(t, items, { retriever });
  assert.deepEqual(
    made.map(({ trajectory }) => trajectory.map(({ candidate_passage_ids: rows }) => rows.length)),
    [
      [3, 0, 3],
      [3, 3, 0],
      [0, 3, 3],
    ],
  );
  assert.deepEqual([counts.rounds, counts.failed, counts.short], [9, 3, 0]);
  assert.deepEqual(
    counts.failures.map(({ id, round_index: round, code }) => [id, round, code]),
    [
      ['one', 2, 'EMPTY_QUERY'],
      ['two', 3, 'QUERY_TOO_LONG'],
      ['three', 1, 'ENDPOINT_REFUSED'],
    ],
  );
  assert.match(counts.failures[1]!.message, /hotpotqa\.json, item 2, search 3: Query 5 is bad\./);
  const many = new FakeRetriever({
    outcome: () => ({ ok: false, error: new TrawlError('EMPTY_QUERY', 'It is empty.') }),
  });
  const all = await make(t, [...items, ...items], { retriever: many });
  assert.deepEqual([all.counts.failed, all.counts.failures.length], [18, 10]);
});

test('an error of a whole batch names its first trajectory', async (t) => {
  const retriever = new FakeRetriever({
    before: () => {
      throw new TrawlError('ENDPOINT_FAILED', 'The server did not answer.');
    },
  });
  await assert.rejects(
    make(t, [step1Item({ searches: [{ query: 'a' }] })], { retriever }),
    trawlError(
      'ENDPOINT_FAILED',
      /The batch from \S*hotpotqa\.json, item 1: The server did not answer\. The same command/,
    ),
  );
});
