import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { RowBitmap } from '../../../src/engine/row-bitmap.ts';
import { type HandOverCounts, handOver, readSubanswers } from '../../../training/agentic-r/hand-over.ts';
import { FAKE_DOCUMENTS } from '../../helpers/fake-retriever.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { judgedFiles } from './judged-files.ts';

interface Handed {
  readonly rounds: Record<string, unknown>[];
  readonly passages: Record<string, unknown>[];
  readonly counts: HandOverCounts;
}

async function hand(
  candidates: string,
  { subanswers, rows = 5 }: { subanswers?: ReadonlyMap<string, readonly string[]>; rows?: number } = {},
): Promise<Handed> {
  const rounds: Record<string, unknown>[] = [];
  const passages: Record<string, unknown>[] = [];
  const counts = await handOver({
    candidates,
    dataset: 'hotpotqa',
    subanswers,
    rows,
    passages: async function* (chosen: RowBitmap) {
      for (const row of chosen) yield { row, document: FAKE_DOCUMENTS[row]! };
    },
    writeRound: async (line) => void rounds.push(JSON.parse(line) as Record<string, unknown>),
    writePassage: async (line) => void passages.push(JSON.parse(line) as Record<string, unknown>),
  });
  return { rounds, passages, counts };
}

const pair = [
  [0, 0],
  [0, 0],
] as const;

async function candidates(t: TestContext): Promise<string> {
  const files = await judgedFiles(t, [
    { id: 'a', firstRow: 1, utilities: pair },
    { id: 'a', round: 2, query: 'second', firstRow: 2, utilities: pair },
  ]);
  return files.candidates;
}

test('a round has everything a judge needs, and a passage of several rounds is written once, with its row as id', async (t) => {
  const { rounds, passages, counts } = await hand(await candidates(t));
  assert.deepEqual(rounds[1], {
    dataset: 'hotpotqa',
    id: 'a',
    round_index: 2,
    question: 'Question of a?',
    golden_answers: ['Ada'],
    history_queries: ['query 1'],
    current_query: 'second',
    subanswer: null,
    reasoning_context: 'context 2',
    passage_ids: ['2', '3'],
  });
  assert.deepEqual(passages, [
    { id: '1', contents: '"Brooklyn Bridge"\nA bridge in New York.', corpus_id: 's-1' },
    { id: '2', contents: '"Big id"\nIts id is beyond 2^53.', corpus_id: '9007199254740993' },
    { id: '3', contents: 'A text without a title.', corpus_id: '3' },
  ]);
  assert.deepEqual(counts, { rounds: 2, passages: 3, withoutCandidates: 0, withoutSubanswer: undefined });
});

test('a round without candidates is not handed over; its query stays in the history of later ones', async (t) => {
  const { candidates: file } = await judgedFiles(t, [
    { id: 'a', utilities: [] },
    { id: 'a', round: 2, query: 'second', utilities: pair },
  ]);
  const { rounds, counts } = await hand(file);
  assert.deepEqual(
    rounds.map((round) => [round.round_index, round.history_queries]),
    [[2, ['query 1']]],
  );
  assert.deepEqual([counts.rounds, counts.withoutCandidates], [1, 1]);
});

test('sub-answers go to their rounds', async (t) => {
  const file = join(await tempFolder(t), 'subanswers.jsonl');
  const list = [
    { query: 'query 1', subanswer: 'Linz' },
    { query: 'second', subanswer: 'Not Sure' },
  ];
  await writeFile(file, `${JSON.stringify({ id: 'a', question: 'q', query_subanswer_list: list })}\n`);
  const subanswers = await readSubanswers(file);
  const { rounds, counts } = await hand(await candidates(t), { subanswers });
  assert.deepEqual(
    rounds.map(({ subanswer }) => subanswer),
    ['Linz', 'Not Sure'],
  );
  assert.equal(counts.withoutSubanswer, 0);
  const none = await hand(await candidates(t), { subanswers: new Map() });
  assert.equal(none.counts.withoutSubanswer, 2);
});

test('sub-answers of other trajectories, and files of another shape, are refused', async (t) => {
  await assert.rejects(
    hand(await candidates(t), { subanswers: new Map([['a', ['only one']]]) }),
    trawlError('CORPUS_BAD_LINE', /has 1 for the 2 rounds of "a"/),
  );
  const file = join(await tempFolder(t), 'subanswers.jsonl');
  for (const [line, message] of [
    ['{"id":"a"}', /"query_subanswer_list" is missing/],
    ['{"id":"a","query_subanswer_list":["x"]}', /"query_subanswer_list"\[0\] is a string; expected an object/],
    ['{"id":"a","query_subanswer_list":[{"query":"x"}]}', /"subanswer" is missing/],
  ] as const) {
    await writeFile(file, line);
    await assert.rejects(readSubanswers(file), trawlError('CORPUS_BAD_LINE', message));
  }
});

test('candidates that are not rows of the index are refused', async (t) => {
  await assert.rejects(
    hand(await candidates(t), { rows: 3 }),
    trawlError('INDEX_FILE_FOREIGN', /has the candidate 3, but the index has 3 rows/),
  );
});
