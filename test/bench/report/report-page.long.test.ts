import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import type { AllResult } from '../../../bench/all/all-result.ts';
import { reportPage } from '../../../bench/report/report-page.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { RESULT } from './result.ts';

const executablePath = process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium';
const skip = existsSync(executablePath)
  ? false
  : `no Chromium at ${executablePath} (apt-get install chromium, or set CHROMIUM_PATH)`;
const SCREENSHOTS = join(packageRoot, '.cache', 'screenshots');

test('the page says what was measured, with what, and what was left out and why', () => {
  const page = reportPage(RESULT, 'result.json');
  for (const text of [
    'A &amp; B &lt;test&gt;, 2 cores',
    'flat: usearch: no &lt;wheel&gt;',
    'index: The disk is full. [DISK_FULL]',
    'embed: not measured',
    'Other programs used this machine (load average up to 3.0)',
    'trawl bench all --from result.json',
    'memory 30 GB/s',
    'int8 peak 900',
    '4.0 × as fast as FAISS',
  ]) {
    assert.ok(page.includes(text), text);
  }
  assert.ok(!page.includes('float32 peak 0'), 'a rate that was not measured has no roof');
  assert.doesNotMatch(page, /NaN|Infinity|undefined|\[object/);
});

test('the roofline says with which instructions its int8 roof was measured, and which roof is missing', () => {
  const { machine } = RESULT.stages;
  assert.ok(machine !== undefined && 'result' in machine);
  const page = (isa: string, peaks: object): string => {
    const { environment, peaks: all } = machine.result;
    const result = { environment: { ...environment, isa }, peaks: { ...all!, float32ProductsPerS: 4e11, ...peaks } };
    return reportPage({ ...RESULT, stages: { ...RESULT.stages, machine: { ...machine, result } } }, 'r.json');
  };
  const avx2 = page('avx2', { int8Isa: 'avx2' });
  assert.match(avx2, /that of int8 with the instructions of avx2\. A search cannot be above them/);
  assert.match(avx2, /900 × 10⁹\/s \(avx2\)/);
  const amx = page('amx', { int8Isa: 'avx512-vnni' });
  assert.match(amx, /instructions of avx512-vnni: .*Tiles of AMX, .*are faster than that roof/);
  assert.doesNotMatch(amx, /A search cannot be above them/);
  const neon = page('neon', { int8ProductsPerS: null });
  assert.match(neon, /The int8 peak of this processor was not measured/);
  assert.doesNotMatch(neon, /A search cannot be above them|int8 peak \d/);
});

test('the report says how much faster all threads multiply than one, and when they had no whole cores', () => {
  const { machine } = RESULT.stages;
  assert.ok(machine !== undefined && 'result' in machine);
  const page = (speedupOfThreads: number): string => {
    const result = { ...machine.result, peaks: { ...machine.result.peaks!, threads: 2, speedupOfThreads } };
    return reportPage({ ...RESULT, stages: { machine: { ...machine, result } } }, 'r.json');
  };
  assert.match(page(1.98), /2\.0 times as many with 2 threads as with one</);
  assert.match(
    page(1.04),
    /1\.0 times as many with 2 threads as with one: the processors share cores, or other programs used them</,
  );
});

test('the bar of two requests is named after the one that it shows', () => {
  const { serve } = RESULT.stages;
  assert.ok(serve !== undefined && 'result' in serve);
  const page = (requests: number): string => {
    const records = serve.result.records.map((record) => ({ ...record, requests }));
    return reportPage({ ...RESULT, stages: { serve: { ...serve, result: { ...serve.result, records } } } }, 'r.json');
  };
  assert.match(page(2), />slower of 2</);
  assert.match(page(3), />median</);
  assert.match(page(4), />upper median</);
  assert.match(page(100), />p50</);
});

test('a result without stages gives a page that says so', () => {
  const page = reportPage({ ...RESULT, stages: {} }, 'result.json');
  assert.match(page, /Nothing was measured/);
  assert.match(page, /flat: not measured/);
  assert.doesNotMatch(page, /NaN|undefined/);
});

const RECORDED = join(packageRoot, 'bench', 'results', 'bench-medium.json');
const OVERFLOW = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
/** Texts that stick out of their plot. */
const OUTSIDE = `[...document.querySelectorAll('svg')].filter((svg) => svg.clientWidth > 50).flatMap((svg) => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter((text) => {
    const own = text.getBoundingClientRect();
    return own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 1 || own.bottom > box.bottom + 1;
  }).map((text) => text.textContent);
})`;

/** Texts of a plot that lie over another one. */
const OVERLAPPING = `[...document.querySelectorAll('svg')].filter((svg) => svg.clientWidth > 50).flatMap((svg) => {
  const texts = [...svg.querySelectorAll('text')].map((text) => ({ name: text.textContent, box: text.getBoundingClientRect() }));
  return texts.flatMap(({ name, box }, i) => texts.slice(i + 1).filter(({ box: other }) =>
    box.left + 1 < other.right && other.left + 1 < box.right && box.top + 3 < other.bottom && other.top + 3 < box.bottom
  ).map(({ name: other }) => name + ' / ' + other));
})`;
/** A4 without Chromium's margins, in CSS pixels. */
const PAPER = { width: 718, height: 1046 };

for (const [name, result] of [
  ['invented', RESULT],
  ['recorded', JSON.parse(readFileSync(RECORDED, 'utf8')) as AllResult],
] as const) {
  test(`a browser shows the page of ${name} figures in light, dark, print and phone width, without asking for anything`, {
    skip,
  }, async (t) => {
    const path = join(await tempFolder(t), 'report.html');
    await writeFile(path, reportPage(result, 'result.json'));
    const address = pathToFileURL(path).href;
    const screenshot = (of: string) => ({ path: join(SCREENSHOTS, `report-${name}-${of}.png`), fullPage: true });
    mkdirSync(SCREENSHOTS, { recursive: true });
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
    t.after(() => browser.close());
    const grounds: string[] = [];
    for (const [form, { width, ...options }] of Object.entries({
      light: { width: 1000, colorScheme: 'light' },
      dark: { width: 1000, colorScheme: 'dark' },
      phone: { width: 360, colorScheme: 'light' },
    } as const)) {
      const page = await browser.newPage({ ...options, viewport: { width, height: 800 } });
      const requests: string[] = [];
      const problems: string[] = [];
      page.on('request', (request) => requests.push(request.url()));
      page.on('pageerror', (error) => problems.push(String(error)));
      page.on('console', (message) => problems.push(message.text()));
      await page.goto(address);
      assert.deepEqual(requests, [address]);
      assert.deepEqual(problems, []);
      assert.ok((await page.getByRole('img').count()) >= 6, 'plots have names');
      assert.equal(await page.evaluate(OVERFLOW), 0, `${form}: wide tables scroll within the page`);
      assert.deepEqual(await page.evaluate(OUTSIDE), [], form);
      assert.deepEqual(await page.evaluate(OVERLAPPING), [], form);
      grounds.push(String(await page.evaluate('getComputedStyle(document.body).backgroundColor')));
      await page.screenshot(screenshot(form));
    }
    assert.notEqual(grounds[0], grounds[1]);
    const page = await browser.newPage({ colorScheme: 'dark', viewport: PAPER });
    await page.goto(address);
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    assert.equal(await page.evaluate('getComputedStyle(document.body).backgroundColor'), 'rgb(255, 255, 255)');
    assert.equal(await page.evaluate(OVERFLOW), 0, 'paper does not scroll');
    await page.screenshot(screenshot('print'));
  });
}
