import assert from 'node:assert/strict';
import { test } from 'node:test';

import fc from 'fast-check';
import { parseTemplate } from '../../corpus/passage-template.ts';
import { contentsOf } from '../../src/index/passages/contents.ts';
import { failsWith } from './corpus-dir.ts';

test('by default the contents are embedded, or title and text in the form of the wiki dumps', () => {
  for (const render of [parseTemplate(), parseTemplate('{contents}'), contentsOf]) {
    assert.equal(render({ contents: '"A"\nb', title: 'C', text: 'd' }), '"A"\nb');
    assert.equal(render({ title: 'Say "No"', text: 'x' }), '"Say "No""\nx');
    assert.equal(render({ text: 'x' }), 'x');
    assert.equal(render({ title: '', text: 'x' }), 'x');
    assert.equal(render({ title: null, text: 'x', contents: null }), 'x');
    assert.equal(render({ contents: '', text: 'x' }), '');
  }
});

test('a template renders columns, literal text and doubled braces', () => {
  const row = { text: 'b', title: 'a', views: 3, big: 2n ** 60n, flag: false, 'with space': 's', 'a.b': 'dot' };
  assert.equal(parseTemplate('{title}: {text}')(row), 'a: b');
  assert.equal(parseTemplate('{{{title}}}')(row), '{a}');
  assert.equal(parseTemplate('passage: {contents}')(row), 'passage: "a"\nb');
  assert.equal(parseTemplate('{views}/{big}/{flag}/{with space}/{a.b}')(row), '3/1152921504606846976/false/s/dot');
});

test('braces in values are literal', () => {
  assert.equal(parseTemplate('{title} {text}')({ title: '{text}', text: '}} $& {title}' }), '{text} }} $& {title}');
});

for (const template of [
  '',
  'no column',
  '{{title}}',
  '{',
  '}',
  '{title',
  'title}',
  '{}',
  '{ title }',
  '{a{b}}',
  '{text:.10}',
  '{text!r}',
  '{title}}',
]) {
  test(`an invalid template is refused: ${JSON.stringify(template)}`, () => {
    assert.throws(() => parseTemplate(template), failsWith('TEMPLATE_INVALID', JSON.stringify(template)));
  });
}

test('a missing column is an error with the place and the existing columns', () => {
  const render = parseTemplate('{abstract}');
  const location = { file: 'c.jsonl', line: 7 };
  assert.throws(
    () => render({ id: 1, text: 't' }, location),
    failsWith(
      'TEMPLATE_INVALID',
      'c.jsonl:7',
      'does not have the column "abstract"',
      '"id", "text"',
      '--passage-template',
    ),
  );
  assert.throws(() => render({ abstract: null, text: 't' }), failsWith('TEMPLATE_INVALID', 'has null in the column'));
  assert.throws(
    () => render({ abstract: ['t'], text: 't' }),
    failsWith('TEMPLATE_INVALID', 'has no text or number in'),
  );
});

test('a property that every object inherits is not a column', () => {
  for (const name of ['constructor', '__proto__', 'toString']) {
    assert.throws(() => parseTemplate(`{${name}}`)({ text: 't' }), failsWith('TEMPLATE_INVALID', 'does not have'));
  }
});

test('any text is a literal once its braces are doubled', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('{', '}', 'a', '$&', '\n')), fc.string(), (pieces, value) => {
      const literal = pieces.join('');
      const escaped = literal.replaceAll('{', '{{').replaceAll('}', '}}');
      assert.equal(parseTemplate(`${escaped}{x}${escaped}`)({ x: value }), literal + value + literal);
    }),
  );
});

test('any string is a valid template or TEMPLATE_INVALID', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('{', '}', 'x', ':', ' ')), (pieces) => {
      try {
        parseTemplate(pieces.join(''));
      } catch (error) {
        failsWith('TEMPLATE_INVALID')(error);
      }
    }),
  );
});
