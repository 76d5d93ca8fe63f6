type Json = Record<string, unknown>;

/** The OpenAPI document as one page without scripts, in the search page's style. */
export function docsPage(document: Json): string {
  const { title, version, summary } = document.info as Record<string, string>;
  const paths = document.paths as Record<string, Record<string, Json>>;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => section(path, method, operation, document)),
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${text(title!)} API</title>
<link rel="stylesheet" href="/page.css">
<link rel="icon" href="/favicon.svg">
</head>
<body>
<main>
<h1>${text(title!)} ${text(version!)}</h1>
<p>${text(summary!)}. The same in OpenAPI 3.1: <a href="/docs/openapi.json">/docs/openapi.json</a>.</p>
${operations.join('\n')}
</main>
</body>
</html>
`;
}

function section(path: string, method: string, operation: Json, document: Json): string {
  const body = (operation.requestBody as { content: Record<string, Json> } | undefined)?.content['application/json'];
  const examples = Object.entries((body?.examples ?? {}) as Record<string, { value: unknown }>);
  const requests = schemasOf(body?.schema as Json | undefined, document);
  const parts = examples.map(([name, { value }], i) => {
    const heading = examples.length === 1 ? '' : `<h3>${text(name)}</h3>\n`;
    return `${heading}${table(requests[i])}\n<pre><code>${text(JSON.stringify(value, null, 2))}</code></pre>`;
  });
  const statuses = Object.entries(operation.responses as Record<string, { description: string }>);
  return `<section>
<h2 id="${text(String(operation.operationId))}">${method.toUpperCase()} ${text(path)}</h2>
<p>${text(String(operation.summary))}</p>
${parts.join('\n')}
<ul>${statuses.map(([status, { description }]) => `<li>${status}: ${text(description)}</li>`).join('')}</ul>
</section>`;
}

/** The object schemas behind a reference or an anyOf of references. */
function schemasOf(schema: Json | undefined, document: Json): Json[] {
  if (schema === undefined) return [];
  const { schemas } = document.components as { schemas: Record<string, Json> };
  const refs = (schema.anyOf as Json[] | undefined) ?? [schema];
  return refs.map(({ $ref }) => schemas[String($ref).split('/').at(-1)!] ?? {});
}

function table(schema: Json | undefined): string {
  const properties = Object.entries((schema?.properties ?? {}) as Record<string, Json>);
  if (properties.length === 0) return '';
  const required = (schema?.required ?? []) as string[];
  const rows = properties.map(([name, field]) => {
    const fallback = required.includes(name) ? 'required' : JSON.stringify(field.default ?? null);
    const cells = [`<code>${text(name)}</code>`, typeName(field), `<code>${text(fallback)}</code>`, described(field)];
    return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
  });
  return `<table><thead><tr><th>Field</th><th>Type</th><th>Default</th><th>Meaning</th></tr></thead>
<tbody>${rows.join('')}</tbody></table>`;
}

function described(field: Json): string {
  return text(typeof field.description === 'string' ? field.description : '');
}

function typeName(field: Json): string {
  if (Array.isArray(field.enum)) return field.enum.map((each) => text(JSON.stringify(each))).join(' or ');
  if (Array.isArray(field.anyOf)) return (field.anyOf as Json[]).map(typeName).join(' or ');
  if (field.type === 'array') return `list of ${typeName((field.items ?? {}) as Json)}`;
  return text(String(field.type ?? 'any'));
}

function text(value: string): string {
  return value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
