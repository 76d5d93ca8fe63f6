import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import { reportHtml } from '../../../../training/trajectories/report/report-html.ts';
import { trajectoryReport } from '../../../../training/trajectories/report/trajectory-report.ts';
import type { Trajectory } from '../../../../training/trajectories/trajectory.ts';
import { tempFolder } from '../../../helpers/temp-folder.ts';

const executablePath = process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium';
const skip = existsSync(executablePath)
  ? false
  : `no Chromium at ${executablePath} (apt-get install chromium, or set CHROMIUM_PATH)`;

async function* oneTrajectory(): AsyncGenerator<Trajectory, void> {
  const search = { query: 'x', searchedText: 'x', truncated: false, shown: [{ id: '1', contents: undefined }] };
  yield {
    id: 'a',
    questionId: 'a',
    question: 'Q?',
    goldenAnswers: [],
    searches: [
      { ...search, turn: 1 },
      { ...search, turn: 2 },
    ],
    output: {},
    place: 'a',
  };
}

test('a browser shows the page in light and dark without asking for anything else', { skip }, async (t) => {
  const questions = [{ id: 'a', question: 'Q?', goldIds: ['1'], type: 'bridge' }];
  const path = join(await tempFolder(t), 'report.html');
  await writeFile(path, reportHtml(await trajectoryReport(oneTrajectory(), questions), 'Report'));
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  t.after(() => browser.close());
  const grounds: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({ colorScheme, viewport: { width: 400, height: 800 } });
    const requests: string[] = [];
    const problems: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    page.on('pageerror', (error) => problems.push(String(error)));
    page.on('console', (message) => problems.push(message.text()));
    await page.goto(pathToFileURL(path).href);
    assert.deepEqual(requests, [pathToFileURL(path).href]);
    assert.deepEqual(problems, []);
    assert.equal(await page.getByRole('table').count(), 3);
    assert.equal(await page.getByRole('rowheader', { name: 'bridge' }).count(), 1);
    // Wide tables scroll within the page, not the page.
    const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
    assert.equal(await page.evaluate(overflow), 0);
    grounds.push(String(await page.evaluate('getComputedStyle(document.body).backgroundColor')));
  }
  assert.notEqual(grounds[0], grounds[1]);
});
