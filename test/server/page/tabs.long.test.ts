import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AccessKeys } from '../../../src/server/access/access-keys.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { serve } from '../build.ts';
import { assertFits, open, PHONE, shoot, startBrowser, structureFaults, textOf, unnamedControls } from './browser.ts';
import { pageServer, skip } from './page-server.ts';

startBrowser();
const server = pageServer();

async function post(path: string, body: object): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return fetch(`${server.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
}

test('arrow keys move between the tabs, the address has the tab, and the browser goes back', { skip }, async () => {
  const page = await open(`${server.url}/?q=bridge&mode=bm25`);
  await page.waitForSelector('.results li');
  await page.focus('#tab-search');
  await page.keyboard.press('ArrowRight');
  await page.waitForSelector('#panel-compare h1');
  assert.equal(await page.evaluate('document.activeElement.id'), 'tab-compare');
  assert.equal(page.url(), `${server.url}/?tab=compare`);
  assert.equal(await page.getAttribute('#tab-compare', 'aria-selected'), 'true');
  assert.equal(await page.getAttribute('#tab-search', 'tabindex'), '-1');
  await page.keyboard.press('End');
  await page.waitForSelector('#panel-trajectories h1');
  await page.keyboard.press('ArrowRight');
  await page.waitForSelector('#panel-search:not([hidden]) .results li');
  assert.equal(page.url(), `${server.url}/?q=bridge&mode=bm25`, 'a tab returns to its last address');
  await page.goBack();
  await page.waitForSelector('#panel-trajectories:not([hidden])');
  await page.goto(`${server.url}/?tab=unknown`);
  await page.waitForSelector('#empty:not([hidden])');
});

test('the live tab draws the metrics, and loads the chart library only then', { skip }, async () => {
  const page = await open(server.url);
  const libraries: string[] = [];
  page.on('request', (request) => {
    if (request.url().includes('uplot')) libraries.push(new URL(request.url()).pathname);
  });
  await page.waitForSelector('#facts dd');
  assert.deepEqual(libraries, []);
  await post('/retrieve', { queries: ['bridge', 'river'], topk: 2 });
  await page.click('#tab-live');
  await page.waitForSelector('.chart >> nth=6');
  assert.deepEqual(libraries.sort(), ['/page/uplot.css', '/page/uplot.js']);
  await post('/retrieve', { queries: ['castle'], topk: 2 });
  await post('/retrieve', { queries: 3 });
  await page.waitForSelector('.plot canvas >> nth=6');
  await page.locator('.charts', { hasText: 'search-r1' }).waitFor();
  const charts = await page.locator('.chart').allTextContents();
  assert.match(charts[0]!, /^Requests per second, by dialect.*search-r1[\d.]+\/s/);
  assert.match(charts[1]!, /embed.*search.*total/);
  assert.match(charts[5]!, /index, read by every search\d.*process\d+ MiB/);
  await page.locator('.charts', { hasText: 'INVALID_REQUEST' }).waitFor();
  assert.match(await textOf(page, '.tiles'), /Median time, last minute[\d.]+ ms/);
  await shoot(page, 'live-light');
  await page.emulateMedia({ colorScheme: 'dark' });
  await shoot(page, 'live-dark');
  await page.setViewportSize(PHONE.viewport);
  await assertFits(page);
  await page.getByRole('button', { name: 'Paused' }).click();
  let asked = 0;
  page.on('request', (request) => {
    if (request.url().endsWith('/metrics')) asked++;
  });
  await page.click('#tab-search');
  await page.waitForSelector('#panel-search:not([hidden])');
  assert.ok(asked <= 1, 'a tab that is not shown asks for nothing');
});

test('screen readers find one heading, named controls and well-formed lists in every tab', { skip }, async () => {
  const page = await open(`${server.url}/?q=bridge`);
  for (const [name, ready] of [
    ['search', '.results li'],
    ['compare', '#compare-a'],
    ['index', '.histogram'],
    ['live', '.plot canvas >> nth=6'],
    ['trajectories', '#rollout-file'],
  ] as const) {
    await page.click(`#tab-${name}`);
    await page.waitForSelector(ready);
    assert.deepEqual(await structureFaults(page), [], name);
    assert.deepEqual(await unnamedControls(page), [], name);
  }
});

test('no tab moves when another one is chosen', { skip }, async () => {
  const page = await open(`${server.url}/`);
  const lefts = (): Promise<(number | undefined)[]> =>
    Promise.all(
      ['search', 'compare', 'index', 'live', 'trajectories'].map((name) =>
        page
          .locator(`#tab-${name}`)
          .boundingBox()
          .then((box) => box?.x),
      ),
    );
  const before = await lefts();
  for (const name of ['trajectories', 'compare']) {
    await page.click(`#tab-${name}`);
    await page.waitForSelector(`#tab-${name}[aria-selected="true"]`);
    assert.deepEqual(await lefts(), before, name);
  }
});

test('a failing live tab says its error once, and leaves the focus where the reader puts it', { skip }, async (t) => {
  const keys = AccessKeys.parse('read:read-key-of-the-focus-test', 'test');
  const { url } = await serve(t, new FakeRetriever(), { keys });
  const page = await open(`${url}/?tab=live`);
  await page.waitForSelector('#error:not([hidden])');
  await page.evaluate(`{
    window.said = 0;
    new MutationObserver(() => window.said++).observe(document.getElementById('error'), { childList: true });
  }`);
  await page.focus('#tab-live');
  for (let i = 0; i < 2; i++) await page.waitForResponse('**/metrics');
  await page.evaluate(`fetch('/livez').then((r) => r.text())`);
  assert.equal(await page.evaluate('document.activeElement.id'), 'tab-live');
  assert.equal(await page.evaluate('window.said'), 0);
});

test('the live tab of a server with keys asks for the key first', { skip }, async (t) => {
  const key = 'read-key-of-the-live-test';
  const { url } = await serve(t, new FakeRetriever(), { keys: AccessKeys.parse(`read:${key}`, 'test') });
  const page = await open(`${url}/?tab=live`);
  await page.waitForSelector('#error:not([hidden])');
  assert.match(await textOf(page, '#error'), /UNAUTHORIZED/);
  await page.fill('#key', key);
  await page.keyboard.press('Enter');
  await page.waitForSelector('.plot canvas');
  assert.equal(await page.isVisible('#error'), false);
});

test('the compare tab shows one question in two indexes or modes, and where they differ', { skip }, async () => {
  const page = await open(`${server.url}/?tab=compare`);
  await page.waitForSelector('#compare-a');
  assert.deepEqual(await unnamedControls(page), []);
  const sides = await page.locator('#compare-a option').allTextContents();
  assert.deepEqual(sides, ['sample · Dense', 'sample · BM25', 'sample · Hybrid', 'dense · Dense']);
  await page.fill('#compare-question', 'a flood destroyed the old Judith Bridge');
  await page.selectOption('#compare-a', 'sample:dense');
  await page.selectOption('#compare-b', 'dense:dense');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Compare' }).last().click();
  await page.waitForSelector('.column >> nth=1');
  assert.match(
    await textOf(page, '#panel-compare .embedded'),
    /^10 of 10 passages are in both lists. The order is the same/,
  );
  const shared = page.url();
  assert.match(shared, /a=sample%3Adense&b=dense%3Adense/);
  await page.selectOption('#compare-b', 'sample:bm25');
  await page.getByRole('button', { name: 'Compare' }).last().click();
  await page.locator('#panel-compare .embedded', { hasText: /^\d of 10 / }).waitFor();
  assert.deepEqual(await page.locator('#panel-compare .column-title').allTextContents(), ['Dense', 'BM25']);
  assert.ok((await page.locator('.badge.only').count()) > 0);
  await shoot(page, 'compare-light');
  const phone = await open(shared, PHONE);
  await phone.waitForSelector('.column >> nth=1');
  await assertFits(phone);
});

const RECORD = { dialect: 'search-r1', index: 'sample', generation: 'x', place: 0, trajectory: 'r-17' };
const ROLLOUTS = [
  {
    id: 'q-1',
    question: 'Where was the designer of the Brooklyn Bridge born?',
    golden_answers: ['Mühlhausen'],
    response:
      '<think>The designer first.</think><search>designer of the bridge</search><information><img src=x onerror=alert(1)> John A. Roebling, born in Mühlhausen</information>So <answer>Mühlhausen</answer>',
  },
  {
    ...RECORD,
    time: '2',
    requestId: 'b',
    turn: 2,
    query: 'Roebling',
    rows: [1, 0],
    ids: ['s-0002', 's-0001'],
    scores: [0.7, 0.3],
  },
  {
    ...RECORD,
    time: '1',
    requestId: 'a',
    turn: 1,
    question: 'Who?',
    query: 'designer',
    rows: [0, 8],
    ids: ['s-0001', 'other'],
    scores: [0.6, 0.5],
  },
  {
    id: 'a-1',
    question: 'Q',
    output: {
      pred: 'Prague',
      retrieval_results: { '0': { query: 'city', docs: [{ id: 1, contents: '"Prague"\nA city.' }] } },
    },
  },
  {
    id: 'm-1',
    messages: [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: '<search>x</search>' },
      { role: 'tool', content: 'found' },
    ],
  },
  { nothing: true },
];

test('the trajectories tab shows a rollout turn by turn with what it was shown', { skip }, async () => {
  const page = await open(`${server.url}/?tab=trajectories`);
  const choose = async (text: string): Promise<void> =>
    page.setInputFiles('#rollout-file', {
      name: 'rollouts.jsonl',
      mimeType: 'application/json',
      buffer: Buffer.from(text),
    });
  await choose(`${ROLLOUTS.map((rollout) => JSON.stringify(rollout)).join('\n')}\nnot json\n`);
  await page.waitForSelector('.turn');
  assert.match(
    await textOf(page, '#panel-trajectories .notice'),
    /^2 left out: line 7: .*; line 6: no searches and no text/,
  );
  const ids = await page.locator('#rollout option').allTextContents();
  assert.deepEqual(ids.map((text) => text.split(' ')[1]).sort(), ['a-1', 'm-1', 'q-1', 'r-17']);
  const choice = async (id: string): Promise<readonly string[]> => {
    await page.selectOption('#rollout', { label: ids.find((text) => text.includes(id))! });
    await page.locator('#panel-trajectories h2', { hasText: new RegExp(`^${id}$`) }).waitFor();
    return page.locator('.turn').allTextContents();
  };
  const recorded = await choice('r-17');
  assert.equal(recorded.length, 2);
  assert.match(
    recorded[0]!,
    /^Searchturn 1.*designer.*Brooklyn Bridge.*id s-0001.*0\.6000.*another passage is at this row/s,
  );
  assert.match(recorded[1]!, /John A\. Roebling.*shown before, in turn 1/s);
  const tagged = await choice('q-1');
  assert.deepEqual(
    tagged.map((text) => text.replace(/Search for it now/, '').slice(0, 12)),
    ['ReasoningThe', 'Searchdesign', 'Shown to the', 'TextSo', 'AnswerMühlha'],
  );
  assert.ok(tagged[2]!.includes('<img src=x onerror=alert(1)>'));
  assert.deepEqual(await page.locator('.turn.information mark').allTextContents(), ['Mühlhausen']);
  await shoot(page, 'trajectories-light');
  assert.match((await choice('a-1')).join(), /Searchstep 1.*city.*Prague.*A city.*AnswerPrague/s);
  assert.match((await choice('m-1')).join(), /userHello.*Search.*x.*Shown to the agentfound/s);
  await choose('[{"id": "q", "text": "<search>deepest river</search>"}]');
  await page.locator('#panel-trajectories h2', { hasText: /^q$/ }).waitFor();
  await page.getByRole('button', { name: 'Search for it now' }).click();
  await page.waitForSelector('#panel-search:not([hidden]) .results li');
  assert.equal(await page.inputValue('#sub'), 'deepest river');
  await page.goBack();
  for (const [text, reason] of [
    ['', /^rollouts.jsonl has no rollouts. $/],
    ['[1, 2', /no rollouts. 1 left out: the file is not JSON/],
    ['1\n{"a": 1}', /no rollouts. 2 left out: line 1: not an object; line 2: no searches/],
  ] as const) {
    await choose(text);
    await page.locator('#panel-trajectories .notice', { hasText: reason }).waitFor();
    assert.equal(await page.locator('.turn').count(), 0);
  }
});

test('the index tab describes the index, and maps a sample whose points can be read and searched for', {
  skip,
}, async () => {
  const page = await open(`${server.url}/?tab=index`);
  await page.waitForSelector('.histogram');
  assert.match(
    await textOf(page, '.about'),
    /The index has 274 passages\. They come .* token-average-256 embedded each as a vector of 256 values.*dot product.*BM25 searches contents.*A search ranks by dense, bm25 or hybrid, by dense if .*source \(string\)/,
  );
  assert.match(
    await textOf(page, '.about'),
    /They come from corpus\.jsonl \(\d+ KiB\).*mean of its tokens.*written by trawl/,
  );
  assert.match(
    await textOf(page, '.shards'),
    /ShardRowsVectorsCodesInverted indexesColumnsPassages10 to 273\d+ KiB float32(?:\d+ KiB|[\d.]+ [KM]iB)/,
  );
  assert.match(await textOf(page, '#panel-index .tiles'), /Rows274.*Read by every search[\d.]+ KiB/);
  assert.match(
    (await page.getAttribute('.bars', 'aria-label'))!,
    /^Lengths of passages in words: from 1\d words to 7\d words/,
  );
  // Of 10 to 79 words, half of the passages have 65 or more: the median is right of the middle.
  const [median, bars] = await Promise.all(
    ['.median', '.bars'].map((part) => page.locator(part).first().boundingBox()),
  );
  assert.ok(median!.x > bars!.x + bars!.width / 2 && median!.x < bars!.x + bars!.width, JSON.stringify([median, bars]));
  await page.getByRole('button', { name: 'Draw the map' }).click();
  await page.waitForSelector('.map circle');
  assert.equal(await page.locator('.map circle').count(), 256);
  await page.locator('.map circle').first().hover({ force: true });
  assert.match(await textOf(page, '.map-text'), /Brooklyn Bridge.*hybrid suspension.*id s-0001/);
  await page.focus('.map svg');
  await page.keyboard.press('ArrowLeft');
  assert.doesNotMatch(await textOf(page, '.map-text'), /s-0001/);
  await shoot(page, 'index-light');
  await page.locator('.map circle').first().click({ force: true });
  await page.waitForSelector('#panel-search:not([hidden]) .results li');
  assert.match(await page.inputValue('#question'), /^Brooklyn Bridge The Brooklyn Bridge is a hybrid/);
  assert.equal(await textOf(page, '#panel-search .results h3'), 'Brooklyn Bridge');
  const phone = await open(`${server.url}/indexes/dense/?tab=index`, PHONE);
  await phone.waitForSelector('.histogram');
  assert.doesNotMatch(await textOf(phone, '.about'), /BM25/);
  assert.deepEqual(await phone.locator('.shards th[scope="row"]').allTextContents(), ['1', '2', '3', 'All 3']);
  await assertFits(phone);
});
