import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { readQrels } from '../../evaluation/judgements.ts';
import { readQuestionSet } from '../../evaluation/question-set.ts';
import { readQuestions } from '../../evaluation/read-questions.ts';
import { readRun } from '../../evaluation/run.ts';
import { failsWith, fileWith } from './evaluation-dir.ts';

const FORMATS = {
  'JSON lines': '{"id":"1","question":"who"}\n{"id":"2","question":"wer, à peu près"}\n',
  'a JSON array': '[{"id":"1","question":"who"},\n{"id":"2","question":"wer, à peu près"}]',
  'a table': '\n1\twho\n2\twer, à peu près\n',
  topics: '<top><num>1<title>who</top>\n<top><num>2<title>wer, à peu près</top>\n',
} as const;

for (const [name, compress] of [
  ['gzip', gzipSync],
  ['zstd', zstdCompressSync],
] as const) {
  test(`questions, judgements and runs are read from ${name}, whatever the name of the file`, async (t) => {
    for (const [format, text] of Object.entries(FORMATS)) {
      const { questions } = await readQuestionSet(fileWith(t, compress(text)));
      const expected = [
        { id: '1', question: 'who' },
        { id: '2', question: 'wer, à peu près' },
      ];
      assert.deepEqual(questions, expected, format);
    }
    assert.deepEqual(await readQrels(fileWith(t, compress('q 0 d 2\n'))), new Map([['q', new Map([['d', 2]])]]));
    assert.deepEqual(
      await readRun(fileWith(t, compress('q Q0 d 1 0.5 tag\n'))),
      new Map([['q', [{ id: 'd', score: 0.5 }]]]),
    );
  });

  test(`a file of ${name} that is cut off is refused`, async (t) => {
    const lines = Array.from({ length: 100 }, (_, id) => `{"id":${id},"question":"who"}\n`);
    const whole = compress(lines.join(''));
    const file = fileWith(t, whole.subarray(0, whole.length - 4));
    for (const read of [readQuestions, readQuestionSet])
      await assert.rejects(read(file), failsWith('CORPUS_BAD_LINE', file, 'cannot be decompressed'));
  });
}
