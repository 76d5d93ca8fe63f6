import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, shoot, startBrowser, textOf } from './browser.ts';
import { pageServer, skip } from './page-server.ts';

startBrowser();
const server = pageServer();

/** Whether the first long text is cut. */
const IS_CUT = `(({ scrollHeight, clientHeight }) => scrollHeight > clientHeight)(document.querySelector('.text.cut'))`;
const SWATCH = `document.querySelector('.chart .swatch').style.background`;
const DARK = { colorScheme: 'dark', viewport: { width: 700, height: 900 } } as const;

test('a printed answer has what was asked and whole texts in black on white, without controls', { skip }, async () => {
  const page = await open(`${server.url}/?q=${encodeURIComponent('who designed the Brooklyn Bridge')}`, DARK);
  await page.waitForSelector('.column:nth-child(3) .results li');
  assert.equal(await page.evaluate(IS_CUT), true);
  await page.emulateMedia({ media: 'print' });
  assert.equal(await page.evaluate('getComputedStyle(document.body).backgroundColor'), 'rgb(255, 255, 255)');
  assert.equal(await page.isVisible('#question'), true);
  for (const control of ['#sub', '#search', '#tabs', '#code', '.results button', '#more'])
    assert.equal(await page.locator(control).first().isVisible(), false, control);
  assert.equal(await page.evaluate(IS_CUT), false);
  // One list after another, as wide as the paper.
  const boxes = await Promise.all([0, 1].map((i) => page.locator('.column').nth(i).boundingBox()));
  assert.ok(boxes[1]!.y >= boxes[0]!.y + boxes[0]!.height && boxes[1]!.x === boxes[0]!.x, JSON.stringify(boxes));
  await shoot(page, 'search-print');
  const pdf = await page.pdf({ format: 'A4' });
  assert.ok(pdf.subarray(0, 5).toString() === '%PDF-' && pdf.length > 10_000);
});

test('a printed trajectory has the passages that the agent was shown', { skip }, async () => {
  const page = await open(`${server.url}/?tab=trajectories`, DARK);
  const record = {
    requestId: 'a',
    dialect: 'search-r1',
    index: 'sample',
    place: 0,
    trajectory: 'r-17',
    turn: 1,
    query: 'designer',
    rows: [0],
    ids: ['s-0001'],
    scores: [0.6],
  };
  const buffer = Buffer.from(JSON.stringify(record));
  await page.setInputFiles('#rollout-file', { name: 'r.jsonl', mimeType: 'application/json', buffer });
  const text = page.locator('.shown .text');
  await text.waitFor({ state: 'attached' });
  assert.equal(await text.isVisible(), false);
  await page.emulateMedia({ media: 'print' });
  assert.equal(await text.isVisible(), true);
  assert.match(await textOf(page, '.shown .text'), /hybrid suspension/);
  assert.equal(await page.isVisible('#rollout-file'), false);
});

test('printed charts have the colours of paper, and those of the screen again after it', { skip }, async () => {
  const page = await open(`${server.url}/?tab=live`, DARK);
  await page.locator('.chart .swatch').first().waitFor();
  // The colours change with the media, before anything is printed.
  const colourOf = async (media: 'print' | 'screen'): Promise<unknown> => {
    await page.emulateMedia({ media });
    return page.evaluate(`new Promise((done) => requestAnimationFrame(() => done(${SWATCH})))`);
  };
  const dark = await colourOf('screen');
  const paper = await colourOf('print');
  assert.notEqual(paper, dark);
  assert.equal(await colourOf('screen'), dark);
});
