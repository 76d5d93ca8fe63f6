import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { frontMatter } from '../../../src/server/dialects/browsecomp-plus.ts';
import { cutCharacters, cutWords } from '../../../src/server/documents/whole-document.ts';

test('a text is cut after its first words, in its own spacing', () => {
  assert.deepEqual(cutWords('  one\ttwo\n three', 2), { text: '  one\ttwo', isCut: true });
  assert.deepEqual(cutWords('one two ', 2), { text: 'one two ', isCut: false });
  assert.deepEqual(cutWords('', 2), { text: '', isCut: false });
  assert.deepEqual(cutWords('one', 0), { text: '', isCut: true });
});

test('the cut text is a beginning with at most the words, and equals the text if nothing was cut', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('a', 'é', ' ', '\n', '💧') }), fc.nat(5), (text, most) => {
      const { text: part, isCut } = cutWords(text, most);
      assert.ok(text.startsWith(part));
      const count = (each: string): number => each.match(/\S+/g)?.length ?? 0;
      assert.equal(isCut, count(text) > most);
      assert.equal(count(part), Math.min(most, count(text)));
      if (!isCut) assert.equal(part, text);
    }),
  );
});

test('characters are never cut in half', () => {
  assert.deepEqual(cutCharacters('a💧b', 2), { text: 'a', isCut: true });
  assert.deepEqual(cutCharacters('a💧b', 3), { text: 'a💧', isCut: true });
  assert.deepEqual(cutCharacters('a💧b', 4), { text: 'a💧b', isCut: false });
});

test('front matter is found at the beginning of a text only', () => {
  assert.deepEqual(frontMatter('---\ntitle: The Thing\ndate: 2024\n---\nText.'), { title: 'The Thing', rest: 'Text.' });
  assert.deepEqual(frontMatter('---\ntitle: "Quoted: one"\n---\n'), { title: 'Quoted: one', rest: '' });
  assert.deepEqual(frontMatter('---\ndate: 2024\n---\nx'), { title: undefined, rest: 'x' });
  assert.deepEqual(frontMatter('---\n---\nx'), { title: undefined, rest: 'x' });
  for (const text of ['', 'x\n---\ntitle: a\n---\n', '---\ntitle: a', '--- title: a\n---\n']) {
    assert.equal(frontMatter(text), undefined, text);
  }
});
