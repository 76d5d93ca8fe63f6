import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { IterationMeasurement } from '../../../training/iteration/measure-iteration.ts';
import type { Measures } from '../../../training/iteration/records.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

test('measures count for the same questions, judgements and records, and not if one of these files has changed', async (t) => {
  const folder = await tempFolder(t);
  const [beir, records] = [join(folder, 'beir'), join(folder, 'calls.jsonl')];
  const [queries, qrels] = [join(beir, 'queries.jsonl'), join(beir, 'qrels', 'test.tsv')];
  mkdirSync(join(beir, 'qrels'), { recursive: true });
  writeFileSync(queries, '{"_id": "1", "text": "who?"}\n');
  writeFileSync(qrels, 'query-id\tcorpus-id\tscore\n1\td1\t1\n');
  writeFileSync(records, '{}\n');
  const prepare = () =>
    IterationMeasurement.prepare({
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
