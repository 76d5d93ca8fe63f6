import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { TrawlError } from '../../src/errors.ts';
import { ServerMetrics } from '../../src/http/metrics/server-metrics.ts';
import { packageRoot } from '../../src/package-root.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { eventually, serve } from '../http/build.ts';

const FOLDER = join(packageRoot, 'deploy', 'monitoring');
const ALERTS = readFileSync(join(FOLDER, 'alerts.yaml'), 'utf8');
/** The alerts without the texts for people. */
const EXPRESSIONS = ALERTS.replaceAll(/^\s*(?:#|summary:|description:).*$/gm, '');
const DASHBOARD = JSON.parse(readFileSync(join(FOLDER, 'grafana-dashboard.json'), 'utf8')) as { panels: Panel[] };

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly refId: string }[];
}

const QUERIES = DASHBOARD.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));

/** promtool is part of Prometheus. */
const withoutPromtool =
  spawnSync('promtool', ['--version']).error === undefined ? false : 'needs promtool (Debian: prometheus)';

/** Names of time series with the names of their labels. */
function seriesOf(text: string): Map<string, Set<string>> {
  const series = new Map<string, Set<string>>();
  for (const line of text.split('\n')) {
    const [, name, labels = ''] = /^(\w+)(?:\{(.*)\})? /.exec(line) ?? [];
    if (name === undefined) continue;
    const known = series.get(name) ?? new Set();
    for (const [, label] of labels.matchAll(/(\w+)="/g)) known.add(label!);
    series.set(name, known);
  }
  return series;
}

test('alerts and dashboard only ask for time series and labels that a server has', async (t) => {
  let failing = false;
  const retriever = new FakeRetriever({
    before: () => {
      if (failing) throw new TrawlError('OVERLOADED', 'x');
    },
  });
  const { app, url } = await serve(t, retriever, { metrics: new ServerMetrics({ process: true }) });
  const ask = (): Promise<Response> =>
    fetch(`${url}/retrieve`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: '{"queries":["a"]}',
    });
  await (await ask()).text();
  failing = true;
  await (await ask()).text();
  let text = '';
  await eventually(() => {
    void app.inject('/metrics').then(({ payload }) => {
      text = payload;
    });
    return text.includes('status="503"') && text.includes('trawl_errors_total{');
  });
  const series = seriesOf(text);
  // Prometheus gives these to every series.
  const added = new Set(['job', 'instance']);
  let uses = 0;
  for (const { title, expr } of [...QUERIES, { title: 'alerts.yaml', expr: EXPRESSIONS }]) {
    for (const [, name, selector = ''] of expr.matchAll(/\b((?:trawl|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)) {
      // The record's counter begins with --record.
      if (name === 'trawl_dropped_lines_total') continue;
      const labels = series.get(name!) ?? assert.fail(`${title}: the server has no ${name}`);
      for (const [, label] of selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)) {
        assert.ok(labels.has(label!) || added.has(label!), `${title}: ${name} has no label ${label}`);
      }
      uses++;
    }
  }
  assert.ok(uses > 40, String(uses));
});

test('panels of the dashboard have their own ids, places, queries and descriptions', () => {
  const { panels } = DASHBOARD;
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  const cells = new Map<string, string>();
  for (const { title, gridPos, targets, description } of panels) {
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.equal(cells.get(`${x} ${y}`), undefined, `${title} covers another panel`);
        cells.set(`${x} ${y}`, title);
      }
      assert.ok(x < 24, `${title} is outside of the page`);
    }
    if (targets === undefined) continue;
    assert.ok(description !== undefined && description.length > 10, `${title} has no description`);
    assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title);
  }
});

test('Prometheus reads the alerts and the queries of the dashboard', { skip: withoutPromtool }, (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const rules = QUERIES.map(({ expr }, i) => ({
    record: `q${i}`,
    // Grafana replaces its own variables before it asks.
    expr: expr
      .replaceAll(/\$__(?:rate_interval|range)/g, '5m')
      .replaceAll('$instance', '.*')
      .replaceAll('$index', '.*'),
  }));
  // JSON is YAML.
  const file = join(folder, 'dashboard.yaml');
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', join(FOLDER, 'alerts.yaml'), file], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stdout + stderr);
});

test('the alerts fire when they should, and only then', { skip: withoutPromtool }, () => {
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', join(FOLDER, 'alerts.test.yaml')], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stdout + stderr);
});

test('docs/operations.md says what to do about every alert, and knows no other', () => {
  const alerts = [...ALERTS.matchAll(/alert: (\w+)/g)].map(([, name]) => name!);
  const documented = [
    ...readFileSync(join(packageRoot, 'docs', 'operations.md'), 'utf8').matchAll(/^\| `(Trawl\w+)` \|/gm),
  ].map(([, name]) => name!);
  assert.deepEqual(documented, alerts);
});
