import assert from 'node:assert/strict';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before } from 'node:test';
import { AxeBuilder } from '@axe-core/playwright';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { packageRoot } from '../../../src/base/package-root.ts';

const executablePath = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium';
export const withoutBrowser = existsSync(executablePath)
  ? false
  : `no Chromium at ${executablePath} (apt-get install chromium, or set CHROMIUM_PATH)`;
const SCREENSHOTS = join(packageRoot, '.cache', 'screenshots');
const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export const PHONE = { viewport: { width: 390, height: 844 } };

let browser: Browser | undefined;
/** What `open` has opened for the running test, and what went wrong there. */
let contexts: BrowserContext[] = [];
let faults: string[] = [];

/** Starts one browser for all tests of the file. */
export function startBrowser(): void {
  before(async () => {
    if (withoutBrowser !== false) return;
    mkdirSync(SCREENSHOTS, { recursive: true });
    browser = await chromium.launch({ executablePath, args: ARGUMENTS });
  });
  // Before the hooks of the test itself, which close the server: a page that still loads would report that it is gone.
  afterEach(async () => {
    const [opened, found] = [contexts, faults];
    [contexts, faults] = [[], []];
    await Promise.all(opened.map((context) => context.close()));
    assert.deepEqual(found, []);
  });
  after(() => browser?.close());
}

/** A page on which any script error, blocked resource, failed request or request to another site fails the test. */
export async function open(url: string, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser!.newContext({ viewport: { width: 1100, height: 900 }, ...options });
  contexts.push(context);
  // In `npm test` the browser shares the cores with many processes: what it waits for tells that the page works, not how fast.
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('dialog', () => faults.push('a dialog was opened'));
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) faults.push(`request to ${request.url()}`);
  });
  page.on('console', (message) => {
    if (message.type() === 'error' && !/status of (401|404|422|501|503)/.test(message.text()))
      faults.push(message.text());
  });
  await page.goto(url);
  return page;
}

export function shoot(page: Page, name: string): Promise<Buffer> {
  return page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });
}

export async function textOf(page: Page, selector: string): Promise<string> {
  return (await page.locator(selector).first().textContent()) ?? '';
}

/** Fails if something is wider than the screen. */
export async function assertFits(page: Page): Promise<void> {
  assert.equal(
    await page.evaluate('document.documentElement.scrollWidth > innerWidth'),
    false,
    'wider than the screen',
  );
}

/** What a screen reader would say wrongly or not at all: groups of lists, headings and names that browsers do not repair. */
export function structureFaults(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    const shown = (node) => node.checkVisibility();
    const faults = [];
    for (const group of document.querySelectorAll('dl > div')) {
      for (const child of group.children) if (!/^D[TD]$/.test(child.tagName)) faults.push('in a dl: ' + child.outerHTML);
    }
    const first = [...document.querySelectorAll('h1')].filter(shown);
    if (first.length !== 1) faults.push(first.length + ' headings of level 1');
    for (const named of document.querySelectorAll('summary[aria-label], button[aria-label]')) {
      if (!named.getAttribute('aria-label').includes(named.textContent.trim())) faults.push('another name: ' + named.outerHTML);
    }
    for (const part of document.body.children) {
      if (shown(part) && !/^(HEADER|NAV|MAIN|FOOTER|NOSCRIPT)$/.test(part.tagName)) faults.push('outside of landmarks: ' + part.outerHTML);
    }
    return faults;
  })()`);
}

/** What axe-core finds: contrast, names, roles, landmarks, sizes of targets. It checks with scripts, which do not run in the page. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  // Style sheets need not be asked for again, which a page in a file may not do.
  const { violations } = await new AxeBuilder({ page }).options({ preload: false }).analyze();
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html}: ${failureSummary}`),
  );
}

/** Parts that move although the reader asks for reduced motion. */
export function movingParts(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`[...document.querySelectorAll('*')].filter((node) => {
    const { transitionDuration, animationName, scrollBehavior } = getComputedStyle(node);
    return !/^(0s(, )?)+$/.test(transitionDuration) || animationName !== 'none' || scrollBehavior === 'smooth';
  }).map((node) => node.outerHTML.slice(0, 200)).concat(document.getAnimations().map(() => 'an animation'))`);
}

/** Controls without a name for screen readers. */
export function unnamedControls(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`[...document.querySelectorAll('input, select, textarea, button')]
    .filter((field) => !(field.labels?.length > 0) && !field.getAttribute('aria-label') && field.textContent.trim() === '')
    .map((field) => field.outerHTML)`);
}
