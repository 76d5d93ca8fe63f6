import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { packageRoot } from '../../src/base/package-root.ts';
import { fileFolder } from '../cli/run-trawl.ts';
import { accessibilityFaults, assertFits, open, PHONE, startBrowser, withoutBrowser } from '../server/page/browser.ts';

const site = join(await fileFolder(), 'site');
const url = (page: string): string => pathToFileURL(join(site, page)).href;
/** A reader without a network; `open` fails the test if a page asks a server. */
const OFFLINE = { offline: true };

before(async () => {
  const script = join(packageRoot, 'scripts', 'docs.mjs');
  // Fails if a link or an anchor leads nowhere.
  await promisify(execFile)(process.execPath, [script, '--out', site], { cwd: packageRoot });
});
startBrowser();

test('the documentation site has every document as a page', () => {
  const pages = readdirSync(join(packageRoot, 'docs')).filter((name) => name.endsWith('.md'));
  assert.ok(pages.length > 20);
  for (const page of [...pages.map((name) => join('docs', name)), 'CHANGELOG.md', 'clients/python/README.md'])
    assert.ok(existsSync(join(site, page.replace(/\.md$/, '.html'))), page);
});

test('a reader without a network finds a section by its words, from the first page and from another', {
  skip: withoutBrowser,
}, async () => {
  for (const start of ['index.html', 'docs/errors.html']) {
    const page = await open(url(start), OFFLINE);
    await page.keyboard.press('/');
    await page.keyboard.type('swap an index without downtime');
    const first = page.locator('#found a').first();
    assert.match((await first.textContent())!, /Swap an index without downtime$/);
    await page.keyboard.press('Enter');
    await page.waitForURL(/docs\/operations\.html#swap-an-index-without-downtime$/);
    assert.equal(await page.locator('h2:target, h3:target').textContent(), 'Swap an index without downtime');
  }
});

test('words that no section has are answered, and Escape ends the search', { skip: withoutBrowser }, async () => {
  const page = await open(url('docs/models.html'), OFFLINE);
  await page.locator('#search').fill('zyxwvut');
  assert.equal(await page.locator('#found').textContent(), 'Nothing found.');
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('#found').isVisible(), false);
});

test('every page fits a phone', { skip: withoutBrowser }, async () => {
  const page = await open(url('index.html'), { ...OFFLINE, ...PHONE });
  for (const name of readdirSync(site, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.html')) continue;
    await page.goto(url(name));
    await assertFits(page).catch((error: Error) => assert.fail(`${name}: ${error.message}`));
  }
});

test('axe-core finds no fault in pages with code and tables, on a screen and on a phone', {
  skip: withoutBrowser,
}, async () => {
  for (const options of [{}, PHONE, { colorScheme: 'dark' as const }]) {
    const page = await open(url('docs/endpoints.html'), { ...OFFLINE, ...options });
    assert.ok((await page.locator('main pre, main table').count()) > 3);
    assert.deepEqual(await accessibilityFaults(page), []);
  }
});
