import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { openRule } from '../../../indexer/prepare/open-rule.ts';
import { splitWords } from '../../../indexer/prepare/python-text.ts';
import { dpr as dprRule, wiki18 as wiki18Rule } from '../../../indexer/prepare/rules/dpr.ts';
import { flashragWords } from '../../../indexer/prepare/rules/flashrag-words.ts';
import { ragR1 as ragR1Rule } from '../../../indexer/prepare/rules/rag-r1.ts';
import { sentences } from '../../../indexer/prepare/rules/sentences.ts';
import { windows } from '../../../indexer/prepare/rules/splitting-rule.ts';
import { words } from '../../../indexer/prepare/rules/words.ts';
import { failsWith } from '../../corpus/corpus-dir.ts';
import { sharedData, withoutSharedData } from '../../helpers/shared-data.ts';
import { KILT_PAGE, numbered, split, texts } from './documents.ts';

const [dpr, ragR1, wiki18] = [dprRule.open(), ragR1Rule.open(), wiki18Rule.open()];

test('windows cover all words, have the given overlap and stop at the first that reaches the end', () => {
  assert.deepEqual(windows(0, 3, 0), []);
  assert.deepEqual(windows(7, 3, 0), [
    [0, 3],
    [3, 6],
    [6, 7],
  ]);
  assert.deepEqual(windows(7, 3, 1), [
    [0, 3],
    [2, 5],
    [4, 7],
  ]);
  assert.deepEqual(windows(2, 3, 2), [[0, 2]]);
  fc.assert(
    fc.property(fc.nat(50), fc.integer({ min: 1, max: 10 }), fc.nat(9), (count, size, wanted) => {
      const overlap = Math.min(wanted, size - 1);
      const found = windows(count, size, overlap);
      assert.equal(found.at(-1)?.[1] ?? 0, count);
      for (const [i, [from, to]] of found.entries()) {
        assert.equal(from, i * (size - overlap));
        assert.ok(i === found.length - 1 ? to - from <= size : to - from === size);
      }
    }),
  );
});

test('RAG-R1: paragraphs are joined, markers removed, and every 100 words are a passage; the last may be shorter', () => {
  assert.deepEqual(texts(ragR1, { wikipedia_title: 'T', text: ['T\n', `${numbered(150)}\n`] }), [
    `T ${numbered(99)}`,
    numbered(150, 99),
  ]);
  assert.deepEqual(texts(ragR1, KILT_PAGE), [
    'Albedo Albedo is the measure of reflection. Terrestrial albedo. Any albedo in visible light falls within a range. ' +
      'It varies. Terrestrial albedo.:Trees. - pines are dark - birches are not',
  ]);
  assert.deepEqual(texts(ragR1, { title: 'T', text: [] }), []);
  assert.deepEqual(texts(ragR1, { title: 'T', text: ' \n' }), []);
  assert.deepEqual(texts(ragR1, { title: 'T', text: ['no line end', 'so one word'] }), ['no line endso one word']);
  assert.deepEqual(texts(ragR1, { title: 'T', text: ['a BULLET::::b SecSection::::tion::::c'] }), ['a b Section::::c']);
  assert.deepEqual(ragR1.columns({ title: 'T', text: 'x', section: '' }), { contents: 'T   x' });
});

test('RAG-R1: a document without a title is refused', () => {
  assert.ok(!ragR1.split({ id: 1, title: null, url: null, pieces: ['x'], isKilt: false }).ok);
});

test('RAG-R1: the section of a passage is the section of its first word', () => {
  const page = {
    title: 'T',
    text: ['T\n', `${numbered(120)}\n`, 'Section::::One.\n', `${numbered(100)}\n`, 'Section::::One.:Two.\n', 'end\n'],
  };
  // T and w0 to w98; w99 to w119, "One." and w0 to w77; w78 to w99, "One.:Two." and end.
  assert.deepEqual(
    split(ragR1, page).map(({ section }) => section),
    ['', '', 'One'],
  );
  assert.deepEqual(
    split(ragR1, { title: 'T', text: ['Section::::A.\n', numbered(200)] }).map(({ section }) => section),
    ['A', 'A', 'A'],
  );
});

test('DPR: the last passage is filled with words from the beginning, and short articles have no passage', () => {
  assert.deepEqual(texts(dpr, { title: 'T', text: numbered(150) }), [
    `T ${numbered(99)}`,
    `${numbered(150, 99)} T ${numbered(48)}`,
  ]);
  assert.deepEqual(texts(dpr, { title: 'T', text: numbered(199) }), [`T ${numbered(99)}`, numbered(199, 99)]);
  assert.deepEqual(texts(dpr, { title: 'T', text: numbered(98) }), []);
  assert.deepEqual(texts(dpr, { title: 'T', text: numbered(99) }), [`T ${numbered(99)}`]);
});

test('DPR: the title is not repeated if it is the first paragraph of the text', () => {
  for (const text of [`T\n\n${numbered(99)}`, ['T\n', numbered(99)], numbered(99)]) {
    assert.deepEqual(texts(dpr, { title: 'T', text }), [`T ${numbered(99)}`]);
  }
  assert.deepEqual(texts(dpr, { title: 'T', text: `T ${numbered(98)}` }), [`T T ${numbered(98)}`], 'a sentence');
});

test('DPR: lists, indexes, outlines and disambiguation pages are left out; HTML entities are decoded', () => {
  const text = numbered(200);
  for (const title of ['List of T', 'Index of T', 'Outline of T', 'T (Disambiguation)', 'T (disambiguation page)']) {
    assert.deepEqual(texts(dpr, { title, text }), [], title);
  }
  for (const title of ['Lists of T', 'A List of T', 'List of']) {
    assert.equal(texts(dpr, { title, text }).length, 3, title);
  }
  assert.deepEqual(split(dpr, { title: 'A&amp;T', text: `&lt;b&gt; ${numbered(98)}` }), [
    { title: 'A&T', text: `A&T <b> ${numbered(98)}`, section: '', filled: 0 },
  ]);
});

test('DPR: only the paragraphs of KILT pages are used', () => {
  const page = { title: 'T', text: ['T\n', 'Section::::S.\n', 'BULLET::::- item\n', `${numbered(150)}\n`] };
  assert.deepEqual(split(dpr, page), [
    { title: 'T', text: `T ${numbered(99)}`, section: '', filled: 0 },
    { title: 'T', text: `${numbered(150, 99)} T ${numbered(48)}`, section: 'S', filled: 49 },
  ]);
});

test('wiki-18: titles are quoted and quotation marks doubled as in the published file', () => {
  const contents = (title: string, text = 'x'): unknown => wiki18.columns({ title, text, section: '' })['contents'];
  assert.equal(contents('Evan Morris'), '"Evan Morris"\nx');
  assert.equal(contents('Absalon'), 'Absalon\nx');
  assert.equal(contents('Al-Qaeda'), 'Al-Qaeda\nx');
  assert.equal(contents('Šiprage'), '"Šiprage"\nx');
  assert.equal(contents('T', 'Antone "Tony" Costa'), 'T\nAntone ""Tony"" Costa');
});

const WIKI_18 = 'flashrag_sample/sample_data.jsonl';

interface WikiRow {
  readonly title: string;
  readonly words: readonly string[];
  readonly contents: string;
}

/** Real rows of wiki-18, their title and words without the CSV quoting. */
function wikiRows(): WikiRow[] {
  const lines = readFileSync(sharedData(WIKI_18), 'utf8').trimEnd().split('\n');
  return lines.map((line) => {
    const { contents } = JSON.parse(line) as { contents: string };
    const [field = '', text = ''] = contents.split(/\n(.*)/s);
    const title = field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field;
    return { title, words: text.replaceAll('""', '"').split(' '), contents };
  });
}

test('wiki-18: 1,000 published rows have 100 words each, and the rule writes them identically', {
  skip: withoutSharedData(WIKI_18),
}, () => {
  const rows = wikiRows();
  assert.equal(rows.length, 1000);
  for (const { title, words, contents } of rows) {
    const text = words.join(' ');
    assert.equal(splitWords(text).count, 100);
    assert.deepEqual(wiki18.columns({ title, text, section: '' }), { contents });
  }
});

test('wiki-18: the rule makes the published first and last passages of 13 real articles', {
  skip: withoutSharedData(WIKI_18),
}, () => {
  const rows = wikiRows();
  let found = 0;
  for (const first of rows.filter(({ title, words }) => words.join(' ').startsWith(`${title} `))) {
    for (const last of rows.filter((row) => row !== first && row.title === first.title)) {
      const titleWords = first.title.split(' ').length;
      // How many words of the beginning are repeated at the end. Only the title does not count: an article may end with it.
      let fill = 99;
      while (fill > titleWords + 1 && last.words.slice(-fill).join(' ') !== first.words.slice(0, fill).join(' '))
        fill--;
      if (fill <= titleWords + 1) continue;
      found += 1;
      const article = [...first.words, ...last.words.slice(0, 100 - fill)].slice(titleWords).join(' ');
      const passages = split(wiki18, { title: first.title, text: article });
      assert.deepEqual(
        passages.map((passage) => wiki18.columns(passage)['contents']),
        [first.contents, last.contents],
      );
    }
  }
  assert.equal(found, 13);
});

test('words: passages have the given size and overlap and do not contain the title', () => {
  const rule = words.open({ size: 4, overlap: 1 });
  assert.deepEqual(texts(rule, { title: 'T', text: `T\n\n${numbered(6)}` }), ['w0 w1 w2 w3', 'w3 w4 w5']);
  assert.deepEqual(
    split(words.open({ size: 8, overlap: 0 }), KILT_PAGE).map(({ text, section }) => [text, section]),
    [
      ['Albedo is the measure of reflection. Any albedo', ''],
      ['in visible light falls within a range. It', 'Terrestrial albedo'],
      ['varies. - pines are dark - birches are', 'Terrestrial albedo'],
      ['not', 'Terrestrial albedo > Trees'],
    ],
  );
  assert.deepEqual(texts(rule, { text: '' }), []);
});

test('sentences: a sentence ends with its paragraph; passages overlap by whole sentences', () => {
  const rule = sentences.open({ size: 2, overlap: 1 });
  assert.deepEqual(texts(rule, { title: 'T', text: 'One is here. Two  follows.\nThree\nFour ends.' }), [
    'One is here. Two follows.',
    'Two follows. Three',
    'Three Four ends.',
  ]);
  assert.deepEqual(texts(rule, KILT_PAGE).at(-1), '- pines are dark - birches are not');
});

test('tokens: no passage has more than the given tokens, except a single word that is longer', async () => {
  const rule = await openRule({ rule: 'tokens', size: 12, overlap: 4, model: 'token-average-256' });
  const { TextTokenizer } = await import('../../../src/encoder/tokenizer/tokenizer.ts');
  const { readModelFolder } = await import('../../../src/encoder/model/model-folder.ts');
  const tokenizer = await TextTokenizer.load((await readModelFolder('token-average-256')).tokenizerPath);
  const long = 'pneumonoultramicroscopicsilicovolcanoconiosis'.repeat(2);
  const text = `Any albedo in visible light falls within a range, unbelievably ${long} and the rest of it.`;
  const passages = texts(rule, { title: 'T', text });
  assert.ok(passages.length >= 3);
  assert.ok(passages.includes(long));
  for (const passage of passages) {
    if (passage !== long) assert.ok(tokenizer.contentIds(passage, 1000).length <= 12, passage);
  }
  const seen = new Set(passages.flatMap((passage) => passage.split(' ')));
  assert.deepEqual(
    text.split(' ').filter((word) => !seen.has(word)),
    [],
  );
});

test('FlashRAG: text is split at single spaces; line ends and empty words are kept', () => {
  const rule = flashragWords.open({ size: 3, overlap: 0 });
  assert.deepEqual(texts(rule, { contents: 'T\na b  c\nd e' }), ['a b ', 'c\nd e']);
  assert.deepEqual(texts(rule, { contents: 'T\n \n ' }), []);
  assert.deepEqual(rule.columns({ title: 'T', text: 'x', section: '' }), { title: 'T', contents: 'T\nx' });
  assert.ok(!rule.split({ id: 1, title: null, url: null, pieces: ['x'], isKilt: false }).ok);
});

test('options that a rule does not support or that contradict each other are refused', async () => {
  const refused = async (options: Parameters<typeof openRule>[0], ...parts: string[]): Promise<void> =>
    assert.rejects(openRule(options), failsWith('USAGE', ...parts));
  await refused({ rule: 'dpr', size: 50 }, 'dpr', '100 words');
  await refused({ rule: 'rag-r1', overlap: 0 }, 'rag-r1');
  await refused({ rule: 'flashrag-words', overlap: 5 }, 'flashrag-words');
  await refused({ rule: 'words', size: 5, overlap: 5 }, '--overlap is 5', '5');
  await refused({ rule: 'words', size: 0 }, '--size is 0');
  await refused({ rule: 'words', overlap: -1 }, '--overlap');
  await refused({ rule: 'tokens' }, '--model');
  await refused({ rule: 'words', model: 'x' }, '--model');
  await assert.rejects(openRule({ rule: 'tokens', model: '/nowhere' }), failsWith('MODEL_NOT_FOUND'));
});
