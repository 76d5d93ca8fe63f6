import type { FastifyInstance } from 'fastify';
import { escapeHtml } from '../../base/escape-html.ts';
import { openApiDocument } from '../api-docs/openapi.ts';
import { DIALECTS } from '../dialects/dispatch.ts';
import { ADMIN_OPERATIONS } from './admin.ts';
import { HEALTH_OPERATIONS } from './health.ts';
import { INDEX_FILE_OPERATIONS } from './index-files.ts';
import { INDEXES_OPERATION, MANIFEST_OPERATION } from './indexes.ts';
import { MODELS_OPERATIONS } from './models.ts';
import { CONTENT_SECURITY_POLICY } from './page.ts';
import { PASSAGE_OPERATION } from './passage.ts';
import { SAMPLE_OPERATION } from './sample.ts';

let docs: { readonly json: string; readonly page: string } | undefined;

/** Made for the first reader: it takes tens of milliseconds, which would delay each start of a server. It is the same for all. */
function apiDocs() {
  if (docs === undefined) {
    const document = openApiDocument(DIALECTS, [
      ...HEALTH_OPERATIONS,
      INDEXES_OPERATION,
      PASSAGE_OPERATION,
      SAMPLE_OPERATION,
      MANIFEST_OPERATION,
      ...MODELS_OPERATIONS,
      ...ADMIN_OPERATIONS,
      ...INDEX_FILE_OPERATIONS,
    ]);
    docs = { json: JSON.stringify(document), page: docsPage(document) };
  }
  return docs;
}

/** `/docs` and `/docs/openapi.json`: the description of the API as a page and as OpenAPI. */
export function registerDocs(app: FastifyInstance): void {
  app.get('/docs/openapi.json', { config: { access: 'open' } }, async (_request, reply) =>
    reply
      .header('cache-control', 'no-cache')
      .header('content-type', 'application/json; charset=utf-8')
      .send(apiDocs().json),
  );
  app.get('/docs', { config: { access: 'open' } }, async (_request, reply) =>
    reply
      .header('cache-control', 'no-cache')
      .header('content-security-policy', CONTENT_SECURITY_POLICY)
      .header('referrer-policy', 'no-referrer')
      .header('content-type', 'text/html; charset=utf-8')
      .send(apiDocs().page),
  );
}

type Json = Record<string, unknown>;

interface Section {
  readonly id: string;
  readonly route: string;
  readonly html: string;
  readonly group: 'search' | 'info' | 'planned';
}

/** The OpenAPI document as an HTML page without scripts, in the search page's style; the search routes come first. */
function docsPage(document: Json): string {
  const { title, version, summary } = document.info as Record<string, string>;
  const paths = document.paths as Record<string, Record<string, Json>>;
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => section(path, method, operation, document)),
  );
  const sections = (['search', 'info', 'planned'] as const).flatMap((group) =>
    all.filter((each) => each.group === group),
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title!)} API</title>
<link rel="stylesheet" href="/page/base.css">
<link rel="icon" href="/favicon.svg">
</head>
<body class="docs">
<header><a class="brand" href="/"><img src="/favicon.svg" alt="" width="28" height="28"><span>${escapeHtml(title!)}</span></a></header>
<main>
<h1>HTTP API, ${escapeHtml(version!)}</h1>
<p>${escapeHtml(summary!)}. As OpenAPI 3.1: <a href="/docs/openapi.json">/docs/openapi.json</a>.</p>
<nav aria-label="Routes"><ul>${sections.map(({ id, route }) => `<li><a href="#${id}">${route.replaceAll('/', '<wbr>/')}</a></li>`).join('')}</ul></nav>
${sections.map(({ html }) => html).join('\n')}
</main>
</body>
</html>
`;
}

function section(path: string, method: string, operation: Json, document: Json): Section {
  const body = (operation.requestBody as { content: Record<string, Json> } | undefined)?.content['application/json'];
  const schemas = schemasOf(body?.schema as Json | undefined, document);
  const examples = Object.entries((body?.examples ?? {}) as Record<string, { summary?: string; value: unknown }>);
  const formats = examples
    .map(([name, example], i) => ({ name, ...example, fields: table(schemas[i]) }))
    .filter(({ fields }) => fields !== '');
  // The last format of a path is first on the page: most clients send it, because it accepts every body that no other accepts.
  const parts = [...formats.slice(-1), ...formats.slice(0, -1)].map(({ name, summary = '', value, fields }) => {
    const heading = formats.length === 1 ? '' : `<h3>${escapeHtml(name)}</h3>\n<p>${escapeHtml(summary)}</p>\n`;
    return `${heading}${fields}\n<pre><code>${escapeHtml(JSON.stringify(value, null, 2))}</code></pre>`;
  });
  const id = escapeHtml(String(operation.operationId));
  const route = `${method.toUpperCase()} ${escapeHtml(path)}`;
  const statuses = Object.entries(operation.responses as Record<string, { description: string }>);
  const html = `<section>
<h2 id="${id}">${route}</h2>
<p>${escapeHtml(String(operation.summary))}</p>
${parameters(operation)}${parts.join('\n')}
<ul>${statuses.map(([status, { description }]) => `<li>${status}: ${escapeHtml(description)}</li>`).join('')}</ul>
</section>`;
  const group =
    examples.length === 0 || path.startsWith('/admin/') ? 'info' : formats.length === 0 ? 'planned' : 'search';
  return { id, route, html, group };
}

/** The object schemas that a reference, or an anyOf of references, refers to. */
function schemasOf(schema: Json | undefined, document: Json): Json[] {
  if (schema === undefined) return [];
  const { schemas } = document.components as { schemas: Record<string, Json> };
  const refs = (schema.anyOf as Json[] | undefined) ?? [schema];
  return refs.map(({ $ref }) => schemas[String($ref).split('/').at(-1)!] ?? {});
}

/** The fields of a request that has them in its URL. Every route has `index`. */
function parameters(operation: Json): string {
  const fields = (
    (operation.parameters ?? []) as { name: string; in: string; required: boolean; schema: Json }[]
  ).filter(({ name, in: place }) => place === 'query' && name !== 'index');
  const properties = Object.fromEntries(fields.map(({ name, schema, ...rest }) => [name, { ...schema, ...rest }]));
  return table({ properties, required: fields.filter((each) => each.required).map(({ name }) => name) });
}

function table(schema: Json | undefined): string {
  // Of a request that may also be a list of objects, the object.
  if (schema?.properties === undefined && Array.isArray(schema?.anyOf)) return table(schema.anyOf[0] as Json);
  const properties = Object.entries((schema?.properties ?? {}) as Record<string, Json>);
  if (properties.length === 0) return '';
  const required = (schema?.required ?? []) as string[];
  const rows = properties.map(([name, field]) => {
    const fallback = required.includes(name) ? 'required' : JSON.stringify(field.default ?? null);
    const cells = [
      `<code>${escapeHtml(name)}</code>`,
      typeName(field),
      `<code>${escapeHtml(fallback)}</code>`,
      escapeHtml(typeof field.description === 'string' ? field.description : ''),
    ];
    return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
  });
  return `<table><thead><tr><th>Field</th><th>Type</th><th>Default</th><th>Meaning</th></tr></thead>
<tbody>${rows.join('')}</tbody></table>`;
}

function typeName(field: Json): string {
  if (Array.isArray(field.enum)) return field.enum.map((each) => escapeHtml(JSON.stringify(each))).join(' or ');
  if (Array.isArray(field.anyOf)) return (field.anyOf as Json[]).map(typeName).join(' or ');
  if (field.type === 'array') {
    const items = typeName((field.items ?? {}) as Json);
    return `list of ${items.includes(' or ') ? `(${items})` : items}`;
  }
  return escapeHtml(String(field.type ?? 'any'));
}
