import assert from 'node:assert/strict';
import { test } from 'node:test';
import { element, escaped, textElement } from '../../../bench/report/markup.ts';
import { rooflinePoints } from '../../../bench/report/roofline-plot.ts';
import { codesBytes } from '../../../src/engine/vectors/codes-size.ts';
import { RESULT } from './result.ts';

test('texts and attributes are escaped, and numbers in attributes are short', () => {
  assert.equal(textElement('p', '<b> & "c"'), '<p>&lt;b&gt; &amp; &quot;c&quot;</p>');
  assert.equal(
    element('a', { title: '"><script>', x: 1 / 3, y: undefined }),
    '<a title="&quot;&gt;&lt;script&gt;" x="0.33"></a>',
  );
  assert.equal(escaped('x'), 'x');
});

test('the roofline counts int8 values of the file that Trawl reads, and float32 values of the others', () => {
  const outcome = RESULT.stages.flat!;
  assert.ok('result' in outcome);
  const [own, other] = outcome.result.records;
  const dimension = 768;
  const rows = 100_000;
  const prefilter = codesBytes(rows, 320) + 4 * 320 * dimension;
  const [withPrefilter, faiss, codesAlone] = rooflinePoints([
    { ...own!, residentBytes: prefilter },
    other!,
    { ...own!, residentBytes: codesBytes(rows, dimension) },
  ]);
  // 100,000 rows of 320 values in 2 ms, and of 768 in 8 ms.
  assert.equal(withPrefilter!.productsPerS, 1.6e10);
  assert.ok(Math.abs(withPrefilter!.productsPerByte - (320 * rows) / prefilter) < 1e-9);
  assert.deepEqual(faiss, { engine: 'faiss', queries: 1, productsPerByte: 0.25, productsPerS: 9.6e9 });
  assert.equal(codesAlone!.productsPerS, 3.84e10);
});
