import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { searchQuestions } from '../../../evaluation/systems/search-questions.ts';
import { type ErrorCode, TrawlError } from '../../../src/base/errors.ts';
import { changesOf, comparedAnswers, prepareMeasurement } from '../../../training/iteration/measure-iteration.ts';
import type { Measures } from '../../../training/iteration/records.ts';
import type { RankedList } from '../../../training/replay/rank-biased-overlap.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

test('measures count for the same questions, judgements and records, and not if one of these files has changed', async (t) => {
  const folder = await tempFolder(t);
  const [beir, records] = [join(folder, 'beir'), join(folder, 'calls.jsonl')];
  const [queries, qrels] = [join(beir, 'queries.jsonl'), join(beir, 'qrels', 'test.tsv')];
  mkdirSync(join(beir, 'qrels'), { recursive: true });
  writeFileSync(queries, '{"_id": "1", "text": "who?"}\n');
  writeFileSync(qrels, 'query-id\tcorpus-id\tscore\n1\td1\t1\n');
  writeFileSync(records, '{}\n');
  const prepare = () =>
    prepareMeasurement({
      questions: beir,
      qrels: undefined,
      form: 'question',
      recallK: 10,
      records: [records],
      changedK: 3,
      retrieving: {},
      note: () => undefined,
      signal: new AbortController().signal,
    });
  let last = await prepare();
  const covered = async (): Promise<boolean> => {
    const next = await prepare();
    const covers = next.covers({ settings: last.settings } as unknown as Measures);
    last = next;
    return covers;
  };
  assert.equal(await covered(), true);
  for (const [file, line] of [
    [queries, '{"_id": "2", "text": "where?"}\n'],
    [qrels, '2\td2\t1\n'],
    [records, '{}\n'],
  ] as const) {
    appendFileSync(file, line);
    assert.equal(await covered(), false, file);
    assert.equal(await covered(), true, file);
  }
});

function lists(of: Readonly<Record<string, string>>): ReadonlyMap<string, RankedList> {
  return new Map(
    Object.entries(of).map(([id, passages]) => [
      id,
      { passages: [...passages], scores: [...passages].map((_, i) => 1 - i / 10) },
    ]),
  );
}

test('an answer has changed if its passages are others or gone; their order does not count, and two empty ones say nothing', () => {
  const before = lists({ same: 'abc', order: 'abc', one: 'abc', fails: 'abc', both: '', found: '' });
  const now = lists({ same: 'abc', order: 'cab', one: 'abd', fails: '', both: '', found: 'abc' });
  const { queries, changed, replaced } = changesOf(comparedAnswers(before, now, 3));
  assert.deepEqual([queries, changed], [5, 3]);
  assert.ok(Math.abs(replaced! - (1 / 3 + 1 + 1) / 5) < 1e-12, String(replaced));
});

test('a held-out question that cannot be searched finds nothing and is named; any other failure ends the measurement', async () => {
  const asked = (code: ErrorCode) => {
    const failed: string[] = [];
    const retriever = new FakeRetriever({
      outcome: (input) => (input === 'bad' ? { ok: false, error: new TrawlError(code, 'No vector.') } : undefined),
    });
    const questions = [
      { id: 'q1', question: 'good' },
      { id: 'q2', question: 'bad' },
    ];
    const run = searchQuestions(retriever, questions, {
      form: 'question',
      k: 2,
      ranking: {},
      forRun: false,
      onFailed: (id, error) => failed.push(`${id}: ${error.message}`),
      signal: new AbortController().signal,
    });
    return { run, failed };
  };
  const { run, failed } = asked('ENCODING_FAILED');
  const { run: found } = await run;
  assert.deepEqual([found.get('q1')!.length, found.get('q2'), failed], [2, [], ['q2: No vector.']]);
  await assert.rejects(asked('ENCODER_FAILED').run, trawlError('ENCODER_FAILED'));
});
