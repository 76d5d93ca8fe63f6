import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { questionFiles, readQuestionSet } from '../../evaluation/question-set.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

/** A folder of BEIR with the judgements of these splits, each a line of a file without its header. */
async function beirFolder(t: TestContext, splits: Readonly<Record<string, string>>): Promise<string> {
  const folder = await tempFolder(t);
  await writeFile(
    join(folder, 'queries.jsonl'),
    ['one', 'two', 'three'].map((text, i) => `${JSON.stringify({ _id: String(i + 1), text })}\n`).join(''),
  );
  await mkdir(join(folder, 'qrels'));
  for (const [name, line] of Object.entries(splits))
    await writeFile(join(folder, 'qrels', `${name}.tsv`), `query-id\tcorpus-id\tscore\n${line}\n`);
  return folder;
}

test('a folder of BEIR has the questions that its test judgements have, with their grades', async (t) => {
  const folder = await beirFolder(t, { train: '2\td\t1', test: '1\td\t2' });
  const { questions, judgements, source } = await readQuestionSet(folder);
  assert.deepEqual(questions, [{ id: '1', question: 'one', goldIds: ['d'] }]);
  assert.deepEqual(judgements, new Map([['1', new Map([['d', 2]])]]));
  assert.match(source, /qrels\/test\.tsv/);
});

test('the split of a folder of BEIR can be chosen', async (t) => {
  const folder = await beirFolder(t, { train: '2\td\t1', dev: '3\te\t1', test: '1\td\t2' });
  const { questions, judgements, source } = await readQuestionSet(folder, { split: 'dev' });
  assert.deepEqual(questions, [{ id: '3', question: 'three', goldIds: ['e'] }]);
  assert.deepEqual([...judgements.keys()], ['3']);
  assert.equal(source, 'BEIR, judgements of qrels/dev.tsv');
});

test('a file of judgements takes the place of those in a folder of BEIR, which needs none', async (t) => {
  for (const splits of [{ test: '1\td\t2' }, {}] as Record<string, string>[]) {
    const folder = await beirFolder(t, splits);
    const qrels = join(await tempFolder(t), 'own.qrels');
    await writeFile(qrels, '2 0 d 1\n2 0 e 0\n3 0 f 2\nelsewhere 0 g 1\n');
    const { questions, judgements, source } = await readQuestionSet(folder, { qrels });
    assert.deepEqual(questions, [
      { id: '2', question: 'two', goldIds: ['d'] },
      { id: '3', question: 'three', goldIds: ['f'] },
    ]);
    assert.deepEqual([...judgements.keys()], ['2', '3', 'elsewhere']);
    assert.equal(source, `BEIR, judgements of ${qrels}`);
    assert.deepEqual(await questionFiles(folder, { qrels }), [join(folder, 'queries.jsonl')]);
  }
});

test('a split that the folder does not have is refused with the ones that it has', async (t) => {
  const folder = await beirFolder(t, { train: '2\td\t1', test: '1\td\t2' });
  await assert.rejects(readQuestionSet(folder, { split: 'dev' }), {
    code: 'CORPUS_FORMAT_UNKNOWN',
    message: /without the judgements qrels\/dev\.tsv\. It has those of test and train: choose by --split/,
  });
  await assert.rejects(readQuestionSet(await beirFolder(t, {})), {
    code: 'CORPUS_FORMAT_UNKNOWN',
    message: /without the judgements qrels\/test\.tsv\. Pass --qrels FILE, or name the file of the questions\./,
  });
});

test('a split is refused of a file, and beside a file of judgements', async (t) => {
  const folder = await beirFolder(t, { dev: '3\te\t1' });
  await assert.rejects(readQuestionSet(join(folder, 'queries.jsonl'), { split: 'dev' }), {
    code: 'USAGE',
    message: /--split dev chooses judgements of a BEIR folder, and .*queries\.jsonl is a file/,
  });
  await assert.rejects(readQuestionSet(folder, { split: 'dev', qrels: 'own.qrels' }), {
    code: 'USAGE',
    message: /those of own\.qrels, so --split dev has no effect/,
  });
});
