import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { packageRoot } from '../../../src/base/package-root.ts';
import { assertFits, open, PHONE, shoot, startBrowser, textOf, unnamedControls } from './browser.ts';
import { pageServer, skip } from './page-server.ts';

startBrowser();
const server = pageServer();

const QUESTION = 'Where was the designer of the Brooklyn Bridge born?';
const LINK = `/?q=${encodeURIComponent(QUESTION)}&s=${encodeURIComponent('who designed the Brooklyn Bridge')}`;

test('the first page has all it needs in less than 100 KB from the server itself', { skip }, async () => {
  const page = await open(`${server.url}/livez`);
  const finished: Promise<number>[] = [];
  const paths: string[] = [];
  page.on('requestfinished', (request) => {
    paths.push(new URL(request.url()).pathname);
    finished.push(request.sizes().then(({ responseBodySize }) => responseBodySize));
  });
  await page.goto(server.url, { waitUntil: 'networkidle' });
  const bytes = (await Promise.all(finished)).reduce((sum, size) => sum + size, 0);
  assert.ok(bytes > 30_000 && bytes < 100_000, `${bytes} bytes for ${paths.join(' ')}`);
  assert.ok(!paths.some((path) => path.includes('uplot')));
});

test('an index with vectors and words shows dense, BM25 and hybrid side by side, with what each found', {
  skip,
}, async () => {
  const page = await open(`${server.url}${LINK}`);
  await page.waitForSelector('.results li');
  assert.deepEqual(await page.locator('.column-title').allTextContents(), ['Dense', 'BM25', 'Hybrid']);
  assert.deepEqual(
    await page.locator('.results > li:first-child h3').allTextContents(),
    Array(3).fill('Brooklyn Bridge'),
  );
  const first = page.locator('.column:first-child .results > li').first();
  assert.deepEqual(await first.locator('.badge').allTextContents(), ['BM25 1', 'Hybrid 1']);
  assert.ok((await page.locator('.badge.only').count()) > 0);
  await first.hover();
  assert.equal(await page.locator('li.same').count(), 3, 'the passage is marked in every list');
  assert.match(await textOf(page, '#embedded'), /The encoder read .*Where was the designer.* \[SEP\] who designed/);
  assert.deepEqual(await unnamedControls(page), []);
  await shoot(page, 'search-light');
});

test('a mode, the results, the history and a filter are part of the link', { skip }, async () => {
  const page = await open(server.url);
  await page.waitForSelector('#mode-field:not([hidden])');
  await page.fill('#question', 'bridge');
  await page.selectOption('#mode', 'bm25');
  await page.fill('#topk', '3');
  await page.click('#more summary');
  await page.fill('#history', 'first query\n\n second query ');
  assert.match(await textOf(page, '#history-help'), /embeds only question and query/);
  assert.match(await textOf(page, '#filter-help'), /Columns: source \(string\)/);
  await page.fill('#filter', "source = 'wiki'");
  await page.click('#search');
  await page.waitForSelector('.results li');
  const link = new URL(page.url());
  assert.deepEqual([...link.searchParams].sort(), [
    ['filter', "source = 'wiki'"],
    ['h', 'first query'],
    ['h', 'second query'],
    ['k', '3'],
    ['mode', 'bm25'],
    ['q', 'bridge'],
  ]);
  const titles = await page.locator('.results h3').allTextContents();
  assert.equal(titles.length, 3);
  const other = await open(page.url());
  await other.waitForSelector('.results li');
  assert.deepEqual(await other.locator('.results h3').allTextContents(), titles);
  assert.equal(await other.inputValue('#history'), 'first query\nsecond query');
  assert.equal(await other.inputValue('#mode'), 'bm25');
  assert.ok(await other.isVisible('#filter'));
});

test('the words that a passage shares with the query are marked, and scores are explained', { skip }, async () => {
  const page = await open(`${server.url}${LINK}`, { colorScheme: 'dark' });
  await page.waitForSelector('.results li');
  const [dense, words, hybrid] = [1, 2, 3].map((n) => page.locator(`.column:nth-child(${n}) .results > li`).first());
  const marked = await words!.locator('.text mark').allTextContents();
  assert.ok(
    ['Brooklyn', 'Bridge', 'designed'].every((word) => marked.includes(word)),
    marked.join(),
  );
  assert.ok(!marked.some((word) => ['the', 'was', 'is'].includes(word.toLowerCase())));
  assert.ok((await dense!.locator('mark').count()) > 0);
  assert.match(await textOf(page, '.stage-key'), /^Time by stage:.*search.*network and waiting$/);
  assert.equal(await textOf(page, '#request-title'), 'The same request as code (Hybrid)');
  for (const item of [dense, words, hybrid]) await item!.locator('summary').click();
  assert.match((await dense!.locator('.explanation').textContent())!, /vectors of query and passage: 0\.\d+.*exact/);
  const terms = await words!.locator('.explanation tbody th').allTextContents();
  assert.deepEqual(terms, ['design × 2', 'brooklyn × 2', 'bridg × 2']);
  const parts = (await words!.locator('.explanation tbody td:nth-child(3)').allTextContents()).map(Number);
  const sum = parts.reduce((total, part) => total + part, 0);
  assert.ok(Math.abs(sum - Number(await words!.locator('summary').textContent())) < 0.001);
  assert.match(
    (await hybrid!.locator('.explanation').textContent())!,
    /Dense10\.\d+.*BM251\d+\..*The sum of both: \d+\..*\(dense score − floor\)/,
  );
  await shoot(page, 'search-dark');
});

test('a word is marked where its stem ends in another letter, and one list needs no key of stages', {
  skip,
}, async () => {
  const page = await open(`${server.url}/?q=destroy&mode=bm25`);
  await page.waitForSelector('.results mark');
  assert.ok((await page.locator('.results mark').allTextContents()).includes('destroyed'));
  assert.equal(await page.locator('.stage-key').count(), 0);
  assert.equal(await textOf(page, '#request-title'), 'The same request as code');
});

test('a hit leads to the passages before and after it, and to similar ones', { skip }, async () => {
  const page = await open(
    `${server.url}/?q=${encodeURIComponent('a flood destroyed the old Judith Bridge')}&mode=bm25`,
  );
  const first = page.locator('.results > li').first();
  await first.getByRole('button', { name: 'Passages before and after' }).click();
  await page.waitForSelector('.around li >> nth=1');
  assert.match((await first.locator('.neighbours').textContent())!, /Passage 2 of 3.*1357 under King.*Thirty statues/);
  await first.getByRole('button', { name: 'Passages like this' }).click();
  await page.waitForSelector('.column:nth-child(3) .results li');
  assert.match(await page.inputValue('#question'), /^The bridge replaced/);
  const alone = await open(`${server.url}/?q=Brooklyn+Bridge+granite+towers&mode=bm25`);
  await alone.locator('.results button', { hasText: 'Passages before' }).first().click();
  await alone.waitForSelector('.neighbours p');
  assert.match(await textOf(alone, '.neighbours'), /only passage of its document/);
});

test('the request in curl, Python and TypeScript is the one that the page sent', { skip }, async (t) => {
  const question = `it's "a" $HOME \\ 💧 bridge`;
  const page = await open(`${server.url}/?q=${encodeURIComponent(question)}&s=bridge&h=first&mode=hybrid&k=2`);
  await page.waitForSelector('.results li');
  const titles = await page.locator('.results h3').allTextContents();
  const code = async (language: string): Promise<string> => {
    await page.getByRole('button', { name: language, exact: true }).click();
    return textOf(page, '#code');
  };
  const run = promisify(execFile);
  const lines = (text: string): string[] =>
    text
      .trim()
      .split('\n')
      .map((line) => line.replace(/^\S+ /, ''));
  const folder = join(packageRoot, '.cache', `page-code-${process.pid}`);
  await mkdir(folder, { recursive: true });
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'search.mjs'), await code('TypeScript'));
  assert.deepEqual(lines((await run(process.execPath, [join(folder, 'search.mjs')])).stdout), titles);
  const python = await code('Python');
  assert.match(
    python,
    /trawl\.search\(\[Query\(question=.*history=\["first"\].*\)\], k=2, mode="hybrid", explain=True\)/,
  );
  const env = { ...process.env, PYTHONPATH: join(packageRoot, 'clients', 'python', 'src') };
  const hasHttpx = await run('python3', ['-c', 'import httpx']).then(
    () => true,
    () => false,
  );
  if (hasHttpx) assert.deepEqual(lines((await run('python3', ['-c', python], { env })).stdout), titles);
  const curl = await code('curl');
  if (!existsSync('/usr/bin/curl')) return;
  const { stdout } = await run('bash', ['-c', curl]);
  const { results } = JSON.parse(stdout) as { results: [{ hits: { title: string }[] }] };
  assert.deepEqual(
    results[0].hits.map(({ title }) => title),
    titles,
  );
});

test('hostile passages stay text, a wrong filter is explained, and other modes are refused', { skip }, async () => {
  const page = await open(`${server.url}/?q=hostile+bridge+quotes`);
  await page.waitForSelector('.results li');
  assert.equal(await page.locator('#results img, #results script').count(), 0);
  const shown = await page.locator('.results > li', { hasText: 'onerror' }).first().textContent();
  assert.match(shown!, /<img src=x onerror=alert\(1\)>.*<script>alert\(2\)<\/script> hostile bridge &amp; "quotes"/s);
  await page.click('#more summary');
  await page.fill('#filter', 'colour = 3');
  await page.click('#search');
  await page.waitForSelector('#error:not([hidden])');
  assert.match(await textOf(page, '#error'), /colour.*source.*HTTP 422/s);
  await page.fill('#filter', '');
  await page.click('#search');
  await page.waitForSelector('.results li');
  assert.equal(await page.isVisible('#error'), false);
  const dense = await open(`${server.url}/indexes/dense/?q=bridge&mode=bm25`);
  await dense.waitForSelector('#error:not([hidden])');
  assert.match(await textOf(dense, '#error'), /NOT_SUPPORTED · HTTP 501/);
  const only = await open(`${server.url}/indexes/dense/?q=bridge`);
  await only.waitForSelector('.results li');
  assert.equal(await only.locator('.column').count(), 1);
  assert.equal(await only.isVisible('#mode-field'), false);
});

test('nothing is wider than a phone, and `/` goes to the question', { skip }, async () => {
  const phone = await open(`${server.url}${LINK}`, PHONE);
  await phone.waitForSelector('.results li');
  await assertFits(phone);
  await shoot(phone, 'search-phone');
  await phone.locator('.results summary').first().focus();
  await phone.keyboard.press('/');
  assert.equal(await phone.evaluate('document.activeElement.id'), 'question');
  await phone.keyboard.type('a/b');
  assert.match(await phone.inputValue('#question'), /a\/b/);
});

test('a query of one word has one term', { skip }, async () => {
  const page = await open(`${server.url}/?q=bridge&mode=bm25&k=1`);
  await page.waitForSelector('.results li');
  assert.match(await textOf(page, '#embedded'), /^The words of .*bridge.* \(1 term\)$/);
});
