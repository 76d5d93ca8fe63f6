import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { serve } from '../build.ts';
import { assertFits, open, PHONE, shoot, startBrowser, textOf, withoutBrowser } from './browser.ts';

const skip = withoutBrowser;
startBrowser();

/** Right-to-left override, which turns round all that follows it on a line unless the page isolates it. */
const OVERRIDE = '\u202e';
const DOCUMENTS = [
  { id: `a${OVERRIDE}b`, title: `${OVERRIDE}txet desrever`, text: `${OVERRIDE}bridge` },
  { id: 'rtl', title: 'الجسر الأبيض', text: 'جسر bridge' },
  { id: 'long', title: 'Long', text: 'bridge of many words '.repeat(5_000) },
  { id: 'wide', title: 'W'.repeat(500), text: `https://example.org/${'a'.repeat(2_000)}` },
  { id: 'empty', title: '', text: 'A text with an empty title.' },
  { id: 'none', text: 'A text without a title.' },
  { id: 'only-title', title: 'A title without a text', text: '' },
  { id: 'null', title: '\u0000\u0007', text: '</p></li></ol><style>*{display:none}</style><base href=//example.org>' },
].map((document) => JSON.stringify(document));

test('passages of any kind keep their place, their direction and the width of the screen', { skip }, async (t) => {
  const { url } = await serve(t, new FakeRetriever({ documents: DOCUMENTS }));
  const page = await open(`${url}/?q=bridge&k=8`, PHONE);
  await page.waitForSelector('.results > li >> nth=7');
  await assertFits(page);
  await shoot(page, 'hostile-phone');
  const item = (id: string) => page.locator('.results > li', { hasText: `id ${id}` });
  const directions = await page.evaluate<string[]>(
    `[...document.querySelectorAll('.results h3')].map((h3) => h3.textContent + ' ' + getComputedStyle(h3).direction)`,
  );
  assert.ok(directions.includes('الجسر الأبيض rtl') && directions.includes('Long ltr'), directions.join(', '));
  for (const id of ['empty', 'none']) assert.equal(await item(id).locator('h3').textContent(), 'Untitled');
  assert.match((await item('null').textContent())!, /<\/p><\/li><\/ol><style>/);
  // 100 kB are cut until the reader wants them.
  const long = item('long').locator('.text');
  const height = async (): Promise<number> => (await long.boundingBox())!.height;
  const cut = await height();
  assert.ok(cut < 600, String(cut));
  await item('long').getByRole('button', { name: 'Whole text' }).click();
  assert.ok((await height()) > 20 * cut);
  await item('only-title').getByRole('button', { name: 'Passages like this' }).click();
  await page.waitForURL(/q=A\+title\+without\+a\+text/);
});

test('a reversing mark in a query or an id reverses nothing after it', { skip }, async (t) => {
  const { url } = await serve(t, new FakeRetriever({ documents: DOCUMENTS }));
  const page = await open(`${url}/?q=${encodeURIComponent(`${OVERRIDE}bridge`)}`);
  await page.waitForSelector('.results li');
  // The number of tokens stands to the right of the query, as it would without the mark.
  const places = await page.evaluate<{ quote: number; tokens: number }>(`(() => {
    const box = document.getElementById('embedded');
    const range = document.createRange();
    range.selectNodeContents(box.lastChild);
    return { quote: box.querySelector('q').getBoundingClientRect().right, tokens: range.getBoundingClientRect().left };
  })()`);
  assert.ok(places.tokens >= places.quote - 1, JSON.stringify(places));
  assert.match(await textOf(page, '#embedded'), /\(\d+ tokens\)$/);
});
