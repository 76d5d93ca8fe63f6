import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  accessibilityFaults,
  assertFits,
  movingParts,
  open,
  PHONE,
  shoot,
  startBrowser,
  structureFaults,
  unnamedControls,
} from './browser.ts';
import { pageServer, skip } from './page-server.ts';

startBrowser();
const server = pageServer();

const ROLLOUT = {
  id: 'q-1',
  question: 'Where was the designer of the Brooklyn Bridge born?',
  golden_answers: ['Mühlhausen'],
  response:
    '<think>The designer first.</think><search>designer of the bridge</search><information>John A. Roebling, born in Mühlhausen</information>So <answer>Mühlhausen</answer>',
};

/** Each tab with something in it, and how a test knows that it is drawn. */
const TABS: readonly { readonly name: string; readonly query: string; fill(page: Page): Promise<unknown> }[] = [
  {
    name: 'search',
    query: '?q=bridge',
    fill: (page) => page.waitForSelector('.column >> nth=2'),
  },
  {
    name: 'compare',
    query: '?tab=compare',
    async fill(page) {
      await page.fill('#compare-question', 'a flood destroyed the old Judith Bridge');
      await page.getByRole('button', { name: 'Compare' }).last().click();
      await page.waitForSelector('.column >> nth=1');
    },
  },
  {
    name: 'index',
    query: '?tab=index',
    async fill(page) {
      await page.waitForSelector('.histogram');
      await page.getByRole('button', { name: 'Draw the map' }).click();
      await page.waitForSelector('.map circle');
    },
  },
  {
    name: 'live',
    query: '?tab=live',
    async fill(page) {
      await page.waitForSelector('.plot canvas >> nth=6');
      const headers = { 'content-type': 'application/json' };
      for (const body of [{ queries: ['bridge', 'river'], topk: 2 }, { queries: 3 }]) {
        await fetch(`${server.url}/retrieve`, { method: 'POST', headers, body: JSON.stringify(body) });
      }
      await page.locator('.charts', { hasText: 'INVALID_REQUEST' }).waitFor();
    },
  },
  {
    name: 'trajectories',
    query: '?tab=trajectories',
    async fill(page) {
      const buffer = Buffer.from(`${JSON.stringify(ROLLOUT)}\n`);
      await page.setInputFiles('#rollout-file', { name: 'rollouts.jsonl', mimeType: 'application/json', buffer });
      await page.waitForSelector('.turn');
    },
  },
];

for (const { name, query, fill } of TABS) {
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const [width, screen] of [
      ['wide', {}],
      ['phone', PHONE],
    ] as const) {
      test(`the tab ${name} fits, has contrast and names, and does not move: ${colorScheme}, ${width}`, {
        skip,
      }, async () => {
        const page = await open(`${server.url}/${query}`, { ...screen, colorScheme, reducedMotion: 'reduce' });
        await fill(page);
        await shoot(page, `tab-${name}-${colorScheme}-${width}`);
        await assertFits(page);
        assert.deepEqual(await accessibilityFaults(page), []);
        assert.deepEqual(await structureFaults(page), []);
        assert.deepEqual(await unnamedControls(page), []);
        assert.deepEqual(await movingParts(page), []);
      });
    }
  }
}

test('the checks find text without contrast, a button without a name and a part that moves', { skip }, async () => {
  const page = await open(`${server.url}/?q=bridge`);
  await page.waitForSelector('.results li');
  await page.evaluate(`{
    const paragraph = document.querySelector('main').appendChild(document.createElement('p'));
    paragraph.textContent = 'grey on white';
    paragraph.style.color = '#ccc';
    paragraph.style.background = '#fff';
    paragraph.style.transition = 'color 1s';
    document.querySelector('main').appendChild(document.createElement('button'));
  }`);
  const faults = (await accessibilityFaults(page)).join('\n');
  assert.match(faults, /color-contrast: <p[^>]*>grey on white/);
  assert.match(faults, /button-name: <button/);
  assert.match((await movingParts(page)).join(), /grey on white/);
});
