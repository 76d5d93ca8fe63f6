/** The request as a curl line, or in Python and TypeScript with Trawl's clients. */
import { byId, copyText, fillChoice } from './dom.js';
import { base, hasKey } from './server.js';

const LANGUAGES = [
  ['curl', 'curl'],
  ['python', 'Python'],
  ['typescript', 'TypeScript'],
];

const WRITERS = { curl: curlLine, python: pythonCode, typescript: typescriptCode };

let language = 'curl';
let shownBody;

export function showRequestCode(body) {
  if (shownBody === undefined) {
    fillChoice(byId('languages'), LANGUAGES, language, (chosen) => {
      language = chosen;
      write();
    });
    byId('copy').addEventListener('click', ({ target }) => copyText(target, byId('code')));
  }
  shownBody = body;
  write();
}

function write() {
  byId('code').textContent = WRITERS[language](shownBody);
}

/** For a POSIX shell, in which only the quote itself is special within single quotes. */
function curlLine(body) {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const ownKey = hasKey() ? " -H 'authorization: Bearer KEY'" : '';
  return `curl -s ${quoted(`${location.origin}${base}/v1/search`)}${ownKey} -H 'content-type: application/json' --data-raw ${quoted(JSON.stringify(body))}`;
}

/** With clients/python of the repository. */
function pythonCode({ queries, ...options }) {
  const [query] = queries;
  const isText = typeof query === 'string';
  const parts = isText ? pythonValue(query) : `Query(${pythonArguments(query)})`;
  return [
    `from trawl_client import ${isText ? 'TrawlClient' : 'Query, TrawlClient'}`,
    '',
    `with TrawlClient(${pythonValue(`${location.origin}${base}`)}${hasKey() ? ', api_key="KEY"' : ''}) as trawl:`,
    `    answer = trawl.search([${[`${parts}]`, pythonArguments(options)].filter((part) => part !== '').join(', ')})`,
    '    for hit in answer.results[0].hits:',
    '        print(hit.score, hit.title)',
  ].join('\n');
}

function pythonArguments(values) {
  return Object.entries(values)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${pythonValue(value)}`)
    .join(', ');
}

/** JSON's strings and numbers are Python's too. */
function pythonValue(value) {
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(', ')}]`;
  return JSON.stringify(value);
}

function typescriptCode(body) {
  return [
    "import { TrawlClient } from 'trawl-retrieval/client';",
    '',
    `const trawl = new TrawlClient(${JSON.stringify(`${location.origin}${base}`)}${hasKey() ? ", { apiKey: 'KEY' }" : ''});`,
    `const { results } = await trawl.search(${JSON.stringify(body)});`,
    'if (results[0]?.ok) for (const { score, title } of results[0].hits ?? []) console.log(score, title);',
  ].join('\n');
}
