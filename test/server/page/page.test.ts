import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { packageRoot } from '../../../src/base/package-root.ts';
import { AccessKeys } from '../../../src/server/access/access-keys.ts';
import { IndexRegistry } from '../../../src/server/indexes/index-registry.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { serve } from '../build.ts';
import { assertFits, open, PHONE, shoot, startBrowser, textOf, unnamedControls, withoutBrowser } from './browser.ts';

const skip = withoutBrowser;
startBrowser();

/** Real text, for useful screenshots. */
function sampleDocuments(): readonly string[] | undefined {
  const file = join(packageRoot, 'corpus', 'sample', 'passages.jsonl');
  if (!existsSync(file)) return undefined;
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .slice(0, 40);
}

function sampleRetriever(): FakeRetriever {
  const documents = sampleDocuments();
  return new FakeRetriever(documents === undefined ? {} : { documents });
}

test('a typed question shows ranked passages, timings and the curl line', { skip }, async (t) => {
  const retriever = sampleRetriever();
  const { url } = await serve(t, retriever);
  const page = await open(url);
  await page.waitForSelector('#facts dd');
  assert.match(await textOf(page, '#facts'), /fake-sample[\s\S]*passages[\s\S]*fake-encoder/);
  await shoot(page, 'empty');
  await page.fill('#question', 'Who designed the Brooklyn Bridge?');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#results li');
  assert.equal(await page.locator('#results li').count(), 5);
  assert.match(await textOf(page, '#results li:first-child .score'), /^0\.9000$/);
  assert.match(await textOf(page, '.summary'), /^5 passages in [\d.]+ ms/);
  assert.match(await textOf(page, '.stages'), /embed\s*1\.25 ms[\s\S]*search\s*0\.50 ms[\s\S]*fetch\s*0\.25 ms/);
  assert.match(page.url(), /\?q=Who\+designed/);
  assert.deepEqual(retriever.calls[0]?.queries, ['Who designed the Brooklyn Bridge?']);
  await shoot(page, 'results-light');
});

test('a deep link fills the form, and question and sub-query are sent separately', { skip }, async (t) => {
  const retriever = sampleRetriever();
  const { url } = await serve(t, retriever);
  const dark = await open(`${url}/?q=Where+was+he+born%3F&s=birthplace+of+the+architect&k=3`, {
    colorScheme: 'dark',
  });
  await dark.waitForSelector('#results li');
  assert.equal(await dark.inputValue('#sub'), 'birthplace of the architect');
  assert.deepEqual(retriever.calls[0]?.queries, [
    { question: 'Where was he born?', query: 'birthplace of the architect' },
  ]);
  assert.equal(retriever.calls[0]?.k, 3);
  await shoot(dark, 'results-dark');
  const phone = await open(`${url}/?q=Where+was+he+born%3F&s=birthplace+of+the+architect`, PHONE);
  await phone.waitForSelector('#results li');
  await assertFits(phone);
  await shoot(phone, 'results-narrow');
  const phoneEmpty = await open(url, PHONE);
  await phoneEmpty.waitForSelector('#facts dd');
  await shoot(phoneEmpty, 'empty-narrow');
});

test('the page asks for an API key and keeps it until the tab is closed', { skip }, async (t) => {
  const retriever = new FakeRetriever();
  const key = 'read-key-of-the-page-test';
  const { url } = await serve(t, retriever, { keys: AccessKeys.parse(`read:${key}`, 'test') });
  const page = await open(`${url}/?q=bridge`);
  await page.waitForSelector('#error:not([hidden])');
  assert.match(await textOf(page, '#error'), /requires an API key.*UNAUTHORIZED · HTTP 401/);
  assert.equal(retriever.calls.length, 0);
  await shoot(page, 'key-wanted');
  for (const wrong of ['a wrong key 💧', 'read-key-of-another-server']) {
    await page.fill('#key', wrong);
    await Promise.all([page.waitForResponse('**/v1/search'), page.keyboard.press('Enter')]);
    await page.waitForSelector('#error:not([hidden])');
    assert.match(await textOf(page, '#error'), /UNAUTHORIZED/);
  }
  await page.fill('#key', key);
  await page.keyboard.press('Enter');
  await page.waitForSelector('#results li');
  // The server describes its indexes only to a reader with a key.
  await page.locator('#rerank-field:not([hidden])').waitFor({ state: 'attached' });
  assert.ok(!page.url().includes(key));
  const line = await textOf(page, '#code');
  assert.ok(line.includes("-H 'authorization: Bearer KEY'") && !line.includes(key));
  await page.reload();
  await page.waitForSelector('#results li');
  const other = await open(`${url}/?q=bridge`);
  await other.waitForSelector('#error:not([hidden])');
});

test('without API keys the page asks for none', { skip }, async (t) => {
  const { url } = await serve(t);
  const page = await open(`${url}/?q=bridge`);
  await page.waitForSelector('#results li');
  assert.equal(await page.isVisible('#key'), false);
});

test('the page of an index searches that index', { skip }, async (t) => {
  const [wiki, news] = ['wiki', 'news'].map((index) => new FakeRetriever({ index }));
  const holder = IndexRegistry.opening(
    [
      { name: 'wiki', folder: '/wiki' },
      { name: 'news', folder: '/news' },
    ],
    async (name) => (name === 'wiki' ? wiki! : news!),
  );
  await holder.open();
  const { url } = await serve(t, holder);
  const page = await open(`${url}/indexes/news/`);
  await page.waitForSelector('#facts dd');
  assert.match(await textOf(page, '#facts'), /news/);
  const asked = wiki!.calls.length;
  await page.fill('#question', 'bridge');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#results li');
  assert.equal(page.url(), `${url}/indexes/news/?q=bridge`);
  assert.match(await textOf(page, '#code'), /\/indexes\/news\/v1\/search'/);
  assert.equal(wiki!.calls.length, asked);
  assert.deepEqual(news!.calls.at(-1)!.queries, ['bridge']);
});

test('the page of an index of words says how it ranks', { skip }, async (t) => {
  const retriever = new FakeRetriever();
  Object.assign(retriever, { info: { ...retriever.info, model: null, modes: ['bm25'] } });
  const { url } = await serve(t, retriever);
  const page = await open(url);
  await page.waitForSelector('#facts dd');
  assert.match(await textOf(page, '#facts'), /ranking\s*BM25/);
  assert.doesNotMatch(await textOf(page, '#facts'), /model/);
  // Written after the facts.
  await page.locator('#sub-help', { hasText: 'the words of both' }).waitFor();
});

test('the curl line works in a shell for any question', { skip }, async (t) => {
  const retriever = new FakeRetriever();
  const { url } = await serve(t, retriever);
  const question = `it's "a" $HOME \`id\` \\ !! 💧 'x' ; ls`;
  const page = await open(`${url}/?q=${encodeURIComponent(question)}`);
  await page.waitForSelector('#results li');
  const line = await textOf(page, '#code');
  const hasCurl = existsSync('/usr/bin/curl');
  // Works without curl: the shell prints the words of the line.
  const command = hasCurl ? line : line.replace(/^curl /, 'printf "%s\\n" ');
  const { stdout } = await promisify(execFile)('bash', ['-c', `set -u; ${command}`]);
  if (hasCurl) assert.deepEqual(retriever.calls[1]?.queries, [question]);
  assert.ok(stdout.includes(hasCurl ? '"results"' : JSON.stringify(question)));
});

test('markup in passages and questions stays text', { skip }, async (t) => {
  const { url } = await serve(t, new FakeRetriever());
  const page = await open(`${url}/?q=${encodeURIComponent('<img src=x onerror=alert(1)>')}`);
  page.on('dialog', () => assert.fail('a script of the corpus ran'));
  await page.waitForSelector('#results li');
  assert.equal(await page.locator('#results img, #results script, main img').count(), 0);
  assert.match(await textOf(page, '#results'), /<script>alert\(1\)<\/script> & co\. 💧/);
  assert.match(await textOf(page, '#results'), /id 9007199254740993/);
});

test('an example is searched with one click, and errors are shown', { skip }, async (t) => {
  const retriever = sampleRetriever();
  const { url } = await serve(t, retriever, { maxK: 50 });
  const page = await open(url);
  await page.locator('#examples button').nth(2).click();
  await page.waitForSelector('#results li');
  assert.equal(typeof retriever.calls[0]?.queries[0], 'object');
  await page.goBack();
  await page.waitForSelector('#empty:not([hidden])');
  await page.goto(`${url}/?q=x&k=60`);
  await page.waitForSelector('#error:not([hidden])');
  assert.match(await textOf(page, '#error'), /the limit of this server is 50 passages[\s\S]*K_TOO_LARGE/);
  await shoot(page, 'error');
});

test('the page works with the keyboard only, and every field has a label', { skip }, async (t) => {
  const { url } = await serve(t, sampleRetriever());
  const page = await open(url);
  const order: string[] = [];
  for (let i = 0; i < 8; i++) {
    order.push(
      await page.evaluate<string>(
        'document.activeElement.id || document.activeElement.className || document.activeElement.tagName',
      ),
    );
    await page.keyboard.press('Tab');
  }
  assert.deepEqual(order.slice(0, 4), ['question', 'sub', 'topk', 'search']);
  assert.deepEqual(await unnamedControls(page), []);
});

test('a server with a reranker offers it, and the score tells the rank that the search gave', { skip }, async (t) => {
  const retriever = sampleRetriever();
  const { url } = await serve(t, retriever);
  const page = await open(`${url}/?q=bridge`);
  await page.waitForSelector('#results li');
  assert.equal(retriever.calls.at(-1)!.rerank, undefined);
  await page.click('#more summary');
  await page.getByLabel('Order the hits with fake-reranker').check();
  await page.click('#search');
  await page.waitForURL(/rerank=1/);
  await page.locator('#results summary').first().click();
  await page.locator('.explanation', { hasText: 'The search had the passage at rank 1' }).first().waitFor();
  assert.notEqual(retriever.calls.at(-1)!.rerank, undefined);
});

test('the page of a view leads to other indexes within the view', { skip }, async (t) => {
  const indexes = ['wiki', 'news'].map((name) => ({ name, folder: name }));
  const holder = IndexRegistry.opening(indexes, async (name) => new FakeRetriever({ index: name }));
  await holder.open();
  const { url } = await serve(t, holder);
  const page = await open(`${url}/views/train/`);
  await page.locator('#facts select').selectOption('news');
  await page.waitForURL(`${url}/views/train/indexes/news/`);
});

test('a page is closed before the server that it loads from', { skip }, async (t) => {
  let page: Page | undefined;
  t.after(() => assert.equal(page?.isClosed(), true));
  const { url } = await serve(t);
  page = await open(url);
});

test('a link that is opened while the server starts is answered once it is ready', { skip }, async (t) => {
  let resolve!: (retriever: FakeRetriever) => void;
  const promise = new Promise<FakeRetriever>((settle) => {
    resolve = settle;
  });
  const holder = IndexRegistry.opening([{ name: 'wiki', folder: 'wiki' }], () => promise);
  const opening = holder.open();
  const { url } = await serve(t, holder);
  const page = await open(`${url}/?q=bridge`);
  await page.waitForSelector('#error:not([hidden])');
  assert.match(await textOf(page, '#error'), /NOT_READY · HTTP 503/);
  assert.match(await textOf(page, '#facts'), /^serverstarting/);
  resolve(new FakeRetriever({ index: 'wiki' }));
  await opening;
  await page.waitForSelector('#results li');
  assert.equal(await page.isVisible('#error'), false);
});

test('the page of a view searches within the view', { skip }, async (t) => {
  const { url } = await serve(t);
  const page = await open(`${url}/indexes/fake-sample/?q=bridge`);
  await page.waitForSelector('#results li');
  const [request] = await Promise.all([
    page.waitForRequest('**/v1/search'),
    page.goto(`${url}/views/train/indexes/fake-sample/?q=bridge`),
  ]);
  assert.equal(new URL(request.url()).pathname, '/views/train/indexes/fake-sample/v1/search');
  await page.waitForSelector('#error:not([hidden])');
  assert.match(await textOf(page, '#error'), /train/);
});
