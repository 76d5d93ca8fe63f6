/** Sampled passages as points. Pointing at one, or the arrow keys, show its text; a click searches for what is like it. */
import { make } from './dom.js';
import { goTo } from './tabs.js';

const SVG = 'http://www.w3.org/2000/svg';
const [WIDTH, HEIGHT, MARGIN, RADIUS] = [900, 480, 14, 5];
/** A pointer this near to a point, in pixels of the screen, is on it: points are small, and fingers are not. */
const REACH = 20;
/** The server sends so much of a text (GET /v1/sample). */
const SHOWN_CHARACTERS = 240;
/** Neighbours are searched for with the beginning of the text. */
const QUERY_CHARACTERS = 240;

export function passageMap(passages, points) {
  const places = placesOf(points);
  const help = make('p', { class: 'help' }, 'Point at a passage, or press an arrow key.');
  const text = make('div', { class: 'map-text', 'aria-live': 'polite' }, help);
  const svg = shape('svg', {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: 'application',
    tabindex: '0',
    'aria-label': `Map of ${passages.length} passages; arrow keys move, Enter searches for similar ones`,
  });
  let at = -1;
  let isTouch = false;
  const dots = places.map(([x, y]) => shape('circle', { cx: x, cy: y, r: RADIUS }));
  svg.append(...dots);
  const show = (i) => {
    dots[at]?.classList.remove('shown');
    at = i;
    dots[i].classList.add('shown');
    const { title, id, row, text: beginning } = passages[i];
    text.replaceChildren(
      make('h3', { dir: 'auto' }, title || 'Untitled'),
      make('p', { dir: 'auto' }, beginning.length < SHOWN_CHARACTERS ? beginning : `${wholeWords(beginning)} …`),
      make(
        'p',
        { class: 'help' },
        `${id === undefined ? `row ${row}` : `id ${id}`} · a click searches for similar passages`,
      ),
    );
  };
  const searchFor = (i) => {
    const { title, text: beginning } = passages[i];
    goTo('search', { q: `${title === undefined ? '' : `${title} `}${beginning}`.slice(0, QUERY_CHARACTERS) });
  };
  const nearest = ({ clientX, clientY }) => {
    const { left, top, width } = svg.getBoundingClientRect();
    const scale = WIDTH / width;
    return nearestTo([(clientX - left) * scale, (clientY - top) * scale], REACH * scale, places);
  };
  svg.addEventListener('pointerdown', ({ pointerType }) => {
    isTouch = pointerType === 'touch';
  });
  svg.addEventListener('pointermove', (event) => {
    const i = event.pointerType === 'touch' ? -1 : nearest(event);
    if (i >= 0 && i !== at) show(i);
  });
  // On a touch screen the first touch shows the text, the second one searches.
  svg.addEventListener('click', (event) => {
    const i = nearest(event);
    if (i < 0) return;
    if (isTouch && i !== at) show(i);
    else searchFor(i);
  });
  svg.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && at >= 0) return searchFor(at);
    const direction = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (direction === undefined) return;
    event.preventDefault();
    show(at < 0 ? 0 : nextIn(direction, at, places));
  });
  return make('div', { class: 'map' }, svg, text);
}

/** Without the word that the cut divided, in a script with spaces. */
function wholeWords(text) {
  return text.replace(/\s+\S{0,20}$/, '');
}

/** The nearest point within 45 degrees of the direction, or the same point if there is none. */
function nextIn([right, down], at, places) {
  const next = nearestTo(places[at], Number.POSITIVE_INFINITY, places, (dx, dy) => {
    const along = dx * right + dy * down;
    return along > 0 && Math.abs(dx * down) + Math.abs(dy * right) <= along;
  });
  return next < 0 ? at : next;
}

/** The point nearest to a place, of those within reach whose distances are `allowed`; -1 if there is none. */
function nearestTo([x, y], reach, places, allowed = () => true) {
  let [best, least] = [-1, reach];
  for (const [i, [otherX, otherY]] of places.entries()) {
    const [dx, dy] = [otherX - x, otherY - y];
    const distance = Math.hypot(dx, dy);
    if (distance < least && allowed(dx, dy)) [best, least] = [i, distance];
  }
  return best;
}

/** The points in the units of the drawing, each axis over its whole range. */
function placesOf(points) {
  const axis = (which, size) => {
    const values = points.map((point) => point[which]);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return values.map((value) => MARGIN + (high > low ? (value - low) / (high - low) : 0.5) * (size - 2 * MARGIN));
  };
  const [xs, ys] = [axis(0, WIDTH), axis(1, HEIGHT)];
  return xs.map((x, i) => [x, ys[i]]);
}

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  return made;
}
