import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page, Request, Route } from 'playwright-core';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { serve } from '../build.ts';
import { open, startBrowser, textOf, withoutBrowser } from './browser.ts';

const skip = withoutBrowser;
startBrowser();

/** A refusal that the console of the browser may report. */
const REFUSAL = {
  status: 422,
  contentType: 'application/json',
  body: JSON.stringify({ error: { code: 'INVALID_REQUEST', message: 'A late refusal.' } }),
};

/** Holds the first request of a path until it is released, with an answer or to the server. */
async function hold(page: Page, path: string): Promise<{ arrived: Promise<Route>; release: Release }> {
  let reached!: (route: Route) => void;
  const arrived = new Promise<Route>((resolve) => {
    reached = resolve;
  });
  await page.route(`**${path}`, (route) => reached(route), { times: 1 });
  const release: Release = async (answer) => {
    const route = await arrived;
    // The page may have aborted the request, which then takes no answer.
    await (answer === undefined ? route.continue() : route.fulfill(answer)).catch(() => {});
    for (let i = 0; i < 3; i++) await page.evaluate(`fetch('/livez', { cache: 'no-store' }).then((r) => r.text())`);
  };
  return { arrived, release };
}
type Release = (answer?: typeof REFUSAL) => Promise<void>;

function countRequests(page: Page, path: string): { count: number } {
  const counted = { count: 0 };
  page.on('request', (request: Request) => {
    if (new URL(request.url()).pathname === path) counted.count++;
  });
  return counted;
}

const RECORD = { requestId: 'a', dialect: 'search-r1', index: 'fake-sample', generation: 'generation-1', place: 0 };

async function choose(page: Page, name: string, ...rollouts: readonly object[]): Promise<void> {
  const buffer = Buffer.from(rollouts.map((rollout) => JSON.stringify(rollout)).join('\n'));
  await page.setInputFiles('#rollout-file', { name, mimeType: 'application/json', buffer });
}

test('a file of rollouts chosen while the passages of another are read stays shown', { skip }, async (t) => {
  const { url } = await serve(t);
  const page = await open(`${url}/?tab=trajectories`);
  await page.waitForSelector('#rollout-file');
  const slow = await hold(page, '/v1/passages');
  await choose(page, 'a.jsonl', { ...RECORD, trajectory: 'first', query: 'q', rows: [0], ids: ['0'], scores: [1] });
  await slow.arrived;
  await choose(page, 'b.jsonl', { id: 'second', text: '<search>river</search>' });
  const title = page.locator('#panel-trajectories h2');
  await title.filter({ hasText: /^second$/ }).waitFor();
  await slow.release();
  assert.equal(await title.textContent(), 'second');
  assert.deepEqual(await page.locator('#rollout option').allTextContents(), ['1. second']);
});

test('a file of rollouts chosen while another is read stays shown', { skip }, async (t) => {
  const { url } = await serve(t);
  const page = await open(`${url}/?tab=trajectories`);
  await page.waitForSelector('#rollout-file');
  await page.evaluate(`{
    const read = File.prototype.text;
    const held = new Promise((release) => { window.release = release; });
    File.prototype.text = async function () {
      if (this.name === 'a.jsonl') await held;
      return read.call(this);
    };
  }`);
  await choose(page, 'a.jsonl', { id: 'first', text: '<search>bridge</search>' });
  await choose(page, 'b.jsonl', { id: 'second', text: '<search>river</search>' });
  const title = page.locator('#panel-trajectories h2');
  await title.filter({ hasText: /^second$/ }).waitFor();
  await page.evaluate('window.release()');
  await page.evaluate('new Promise((done) => setTimeout(done, 50))');
  assert.equal(await title.textContent(), 'second');
});

test('the live tab, left and opened again during a reading, has one reading at a time', { skip }, async (t) => {
  const { url } = await serve(t);
  const page = await open(url);
  await page.waitForSelector('#facts dd');
  await page.clock.install({ time: 0 });
  // Far from the start, so that it is not past already; from here on only runFor lets timers end.
  await page.clock.pauseAt(3_600_000);
  const slow = await hold(page, '/metrics');
  await page.click('#tab-live');
  await slow.arrived;
  await page.click('#tab-search');
  const answered = page.waitForResponse(`${url}/metrics`);
  await page.click('#tab-live');
  await answered;
  await page.locator('.tiles', { hasText: 'In flight' }).waitFor();
  await slow.release();
  const readings = countRequests(page, '/metrics');
  await page.clock.runFor(2000);
  for (let i = 0; i < 3; i++) await page.evaluate(`fetch('/livez').then((r) => r.text())`);
  assert.equal(readings.count, 1);
});

test('a search that fails after the reader left its tab says nothing there, and is made again on return', {
  skip,
}, async (t) => {
  const { url } = await serve(t);
  for (const [address, tab] of [
    ['/?q=bridge', 'search'],
    ['/?tab=compare&q=bridge', 'compare'],
  ] as const) {
    const page = await open(`${url}/livez`);
    const slow = await hold(page, '/v1/search');
    await page.goto(`${url}${address}`);
    await slow.arrived;
    await page.click('#tab-trajectories');
    await page.waitForSelector('#panel-trajectories h1');
    await slow.release(REFUSAL);
    assert.equal(await page.isVisible('#error'), false);
    await page.click(`#tab-${tab}`);
    await page.waitForSelector(`#panel-${tab} .results > li`);
    assert.equal(await page.getAttribute('#answer', 'aria-busy'), null);
  }
});

test('a tab that is left while it waits for the server asks nothing more', { skip }, async (t) => {
  const retriever = new FakeRetriever();
  const { url } = await serve(t, retriever);
  for (const [address, awaited] of [
    ['/?q=bridge', '/readyz'],
    ['/?tab=compare&q=bridge', '/v1/indexes'],
  ] as const) {
    const page = await open(`${url}/livez`);
    const slow = await hold(page, awaited);
    await page.goto(`${url}${address}`);
    await slow.arrived;
    await page.click('#tab-trajectories');
    await page.waitForSelector('#panel-trajectories h1');
    await slow.release();
    await page.waitForSelector('#facts dd');
    assert.equal(retriever.calls.length, 0);
    await page.context().close();
  }
});

test('Back to the empty compare tab stops the comparison', { skip }, async (t) => {
  const { url } = await serve(t);
  const page = await open(`${url}/?tab=compare`);
  await page.fill('#compare-question', 'bridge');
  const slow = await hold(page, '/v1/search');
  await page.getByRole('button', { name: 'Compare' }).click();
  await slow.arrived;
  await page.goBack();
  const isEmpty = async (): Promise<boolean> => (await page.inputValue('#compare-question')) === '';
  for (let i = 0; i < 500 && !(await isEmpty()); i++) await page.waitForTimeout(20);
  assert.ok(await isEmpty());
  await slow.release();
  assert.equal(await textOf(page, '#panel-compare .embedded'), '');
  assert.equal(await page.isVisible('#panel-compare .results'), false);
});
