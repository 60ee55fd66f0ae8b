// A plain structure that the collections and pointers of Rust's library lead to: for each a line
// "ADDRESS WHERE". What was removed from a collection is still there, and no leaf any more.
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::io::{Read, Write};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Leaf {
    number: u64,
    next: Option<Box<Leaf>>,
    more: [u64; 6],
}

// As large as a leaf, and nothing that is known leads to it.
struct Other {
    words: [u64; 8],
}

struct Item {
    leaf: Box<Leaf>,
    count: u64,
}

// Behind a key of one byte in three words.
struct Odd {
    leaf: Box<Leaf>,
    count: u32,
    short: u16,
}

trait Keeper {
    fn count(&self) -> u64;
}

struct Small {
    leaf: Box<Leaf>,
}

struct Large {
    words: [u64; 20],
    leaf: Box<Leaf>,
}

impl Keeper for Small {
    fn count(&self) -> u64 {
        self.leaf.number
    }
}

impl Keeper for Large {
    fn count(&self) -> u64 {
        self.leaf.number + self.words[0]
    }
}

enum Tree {
    Empty,
    Branch(Box<Tree>, Box<Leaf>),
}

// Two kinds of elements behind the same pointer: the tag says which.
enum Shape {
    Circle(f64),
    Poly(Vec<(f64, f64)>),
    Words(Vec<u32>),
}

#[derive(Default)]
struct All {
    hashed: HashMap<u64, Item>,
    named: HashMap<String, Box<Leaf>>,
    odd: HashMap<u8, Odd>,
    set: HashSet<Box<Leaf>>,
    few: HashMap<u64, Box<Leaf>>,
    bytes: HashSet<u8>,
    nested: HashMap<u64, HashMap<u64, Item>>,
    ordered: BTreeMap<u64, Item>,
    sorted: BTreeSet<Box<Leaf>>,
    words: BTreeMap<String, Vec<Item>>,
    queue: VecDeque<Item>,
    vec: Vec<Item>,
    shared: Vec<Rc<Item>>,
    cells: Vec<Rc<RefCell<Item>>>,
    atomic: Vec<Arc<Mutex<BTreeMap<u64, Item>>>>,
    boxed: Vec<Box<dyn Keeper>>,
    counted: Vec<Rc<dyn Keeper>>,
    threads: HashMap<u64, Arc<dyn Keeper + Send + Sync>>,
    tree: Option<Box<Tree>>,
    shapes: Vec<Shape>,
    texts: Vec<Arc<str>>,
    hidden: Vec<usize>,
}

fn make(place: &str) -> Box<Leaf> {
    let leaf = Box::new(Leaf { number: 7, next: None, more: [0; 6] });
    println!("{:p} {}", &*leaf, place);
    leaf
}

fn item(place: &str, count: u64) -> Item {
    Item { leaf: make(place), count }
}

// A leaf that is dropped where it is: its place becomes something else.
fn hide(all: &mut All, item: Item) {
    let raw = Box::into_raw(item.leaf) as *mut Other;
    unsafe { (*raw).words = [3; 8] };
    all.hidden.push(raw as usize ^ usize::MAX);
}

fn unsaid(count: u64) -> Item {
    Item { leaf: Box::new(Leaf { number: 9, next: None, more: [0; 6] }), count }
}

fn numbered(place: &str, number: u64) -> Box<Leaf> {
    let mut leaf = make(place);
    leaf.number = number;
    leaf
}

fn fill_hashes(all: &mut All) {
    for i in 0..200 {
        all.hashed.insert(i, item("HashMap", i));
        all.named.insert(format!("the name of number {}", i), make("HashMap"));
        all.set.insert(numbered("HashSet", i));
        all.odd.insert(i as u8, Odd { leaf: make("HashMap"), count: 1, short: 2 });
        let inner = all.nested.entry(i % 20).or_default();
        inner.insert(i, item("HashMap", i));
        all.hashed.insert(1000 + i, unsaid(i));
    }
    for i in 0..200 {
        let gone = all.hashed.remove(&(1000 + i)).unwrap();
        hide(all, gone);
    }
    all.few.insert(1, make("HashMap"));
    all.bytes.extend([3, 4]);
}

fn fill_trees(all: &mut All) {
    for i in 0..500 {
        all.ordered.insert(i, item("BTreeMap", i));
        all.sorted.insert(numbered("BTreeSet", i));
        all.words.entry(format!("{}", i % 50)).or_default().push(item("Vec", i));
        if i % 5 == 0 {
            all.ordered.insert(1000 + i, unsaid(i));
        }
    }
    for i in 0..100 {
        let gone = all.ordered.remove(&(1000 + 5 * i)).unwrap();
        hide(all, gone);
    }
}

fn fill_others(all: &mut All) {
    for i in 0..50 {
        all.queue.push_back(item("VecDeque", i));
        if i > 20 {
            let gone = all.queue.pop_front().unwrap();
            all.vec.push(gone);
        }
        all.vec.push(item("Vec", i));
        all.shared.push(Rc::new(item("Rc", i)));
        all.cells.push(Rc::new(RefCell::new(item("RefCell", i))));
        let map = Arc::new(Mutex::new(BTreeMap::new()));
        map.lock().unwrap().insert(i, item("Mutex", i));
        all.atomic.push(map);
        all.boxed.push(Box::new(Small { leaf: make("Box<dyn>") }));
        all.boxed.push(Box::new(Large { words: [1; 20], leaf: make("Box<dyn>") }));
        all.counted.push(Rc::new(Small { leaf: make("Rc<dyn>") }));
        all.counted.push(Rc::new(Large { words: [1; 20], leaf: make("Rc<dyn>") }));
        all.threads.insert(i, Arc::new(Large { words: [2; 20], leaf: make("Arc<dyn>") }));
        let before = all.tree.take().unwrap_or(Box::new(Tree::Empty));
        all.tree = Some(Box::new(Tree::Branch(before, make("enum"))));
    }
}

// "made ADDRESS TYPE" of what is no leaf.
fn fill_shapes(all: &mut All) {
    for i in 0..60 {
        let points = vec![(1.0, i as f64); i % 3 + 2];
        let words = vec![i as u32; i % 5 + 6];
        let text: Arc<str> = Arc::from(format!("a shared text {}", i).as_str());
        println!("made {:p} (f64, f64)[]", points.as_ptr());
        println!("made {:p} u32[]", words.as_ptr());
        println!("made 0x{:x} alloc::sync::ArcInner<str>", text.as_ptr() as usize - 16);
        all.shapes.push(Shape::Circle(i as f64));
        all.shapes.push(Shape::Poly(points));
        all.shapes.push(Shape::Words(words));
        all.texts.push(text);
    }
    all.shapes.shrink_to_fit();
    all.texts.shrink_to_fit();
}

fn measure(all: &All) -> u64 {
    let shapes: u64 = all.shapes.iter().map(|shape| match shape {
        Shape::Circle(radius) => *radius as u64,
        Shape::Poly(points) => points.iter().map(|point| point.0 as u64 + point.1 as u64).sum(),
        Shape::Words(words) => words.iter().map(|word| *word as u64).sum(),
    }).sum();
    shapes + all.texts.iter().map(|text| text.len() as u64).sum::<u64>()
}

fn depth(tree: &Tree) -> u64 {
    match tree {
        Tree::Empty => 0,
        Tree::Branch(inner, leaf) => depth(inner) + leaf.number / 7,
    }
}

fn sum(all: &All) -> u64 {
    let odd: u64 = all.odd.values().map(|odd| odd.count as u64 + odd.short as u64 + odd.leaf.number).sum();
    let items: u64 = all.vec.iter().chain(&all.queue).map(|item| item.count).sum();
    let kept: u64 = all.boxed.iter().map(|kept| kept.count()).sum();
    let counted: u64 = all.counted.iter().map(|kept| kept.count()).sum();
    let threads: u64 = all.threads.values().map(|kept| kept.count()).sum();
    all.bytes.len() as u64 + odd + items + kept + counted + threads + measure(all) + depth(all.tree.as_ref().unwrap())
}

fn main() {
    let mut all = Box::<All>::default();
    fill_hashes(&mut all);
    fill_trees(&mut all);
    fill_others(&mut all);
    fill_shapes(&mut all);
    println!("{} in all\nready", sum(&all));
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    println!("{}", sum(&all));
}
