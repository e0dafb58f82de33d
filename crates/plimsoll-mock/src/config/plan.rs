//! The plan of a mock, ready to be served.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_server::config::{NamedPath, PathUse};

use crate::folder::Folder;
use crate::import::mapping_folder::MappingFolder;
use crate::middleware::RhaiMiddleware;
use crate::openapi::{DocumentSettings, OpenApi};
use crate::request::RequestView;
use crate::rules::RuleSet;
use crate::store::collection::Collection;
use crate::store::states::States;
use crate::worker::sharing::Sharing;

/// Bytes of request content by default. Rules hold the content in memory to match it; uploads in tests are mostly
/// below 10 MiB.
pub const BODY_LIMIT: u64 = 32 << 20;

/// Rules and folders.
#[derive(Debug, Clone)]
pub struct MockPlan {
    /// Scripts that may answer before everything else, in the order in which they are called.
    pub middlewares: Arc<[RhaiMiddleware]>,
    /// In the order in which they are tried.
    pub sets: Vec<Arc<RuleSet>>,
    /// Collections, which respond where no rule does, each below its path; the first one that covers a path.
    pub collections: Vec<Arc<Collection>>,
    /// Documents, which respond where neither rules nor collections do: the first that has the path.
    pub openapi: Vec<Arc<OpenApi>>,
    /// The folder that responds where nothing else does.
    pub folder: Option<Folder>,
    /// The cross-origin permissions.
    pub sharing: Sharing,
    /// Bytes of content that a request may have.
    pub body_limit: u64,
    /// The states of its scenarios.
    pub states: States,
    /// The files that it was made of.
    pub files: Vec<PathBuf>,
    /// Files that it was made of or uses, and that are not followed.
    pub(crate) others: Vec<PathBuf>,
    /// The folder of WireMock's mappings that it was imported from, if it was.
    pub(crate) mappings: Option<Arc<MappingFolder>>,
}

impl MockPlan {
    /// A folder and nothing else.
    pub fn of_folder(folder: Folder) -> Self {
        Self {
            folder: Some(folder),
            ..Self::of_sets(Vec::new())
        }
    }

    /// Rules and nothing else.
    pub fn of_sets(sets: Vec<RuleSet>) -> Self {
        Self {
            middlewares: Arc::default(),
            sets: sets.into_iter().map(Arc::new).collect(),
            collections: Vec::new(),
            openapi: Vec::new(),
            folder: None,
            sharing: Sharing {
                is_on: true,
                credentials: Vec::new(),
            },
            body_limit: BODY_LIMIT,
            states: States::default(),
            files: Vec::new(),
            others: Vec::new(),
            mappings: None,
        }
    }

    /// Gives every rule without a key one; only before the plan is shared.
    pub(crate) fn name_rules(&mut self) {
        for (set, number) in self.sets.iter_mut().zip(1..) {
            if let Some(set) = Arc::get_mut(set) {
                set.name_rules(number);
            }
        }
    }

    /// Changes the settings of its OpenAPI documents; only before the plan is shared.
    pub(crate) fn override_settings(&mut self, settings: &DocumentSettings) {
        for document in self.openapi.iter_mut().filter_map(Arc::get_mut) {
            document.override_settings(settings);
        }
    }

    /// The numbers of the set and the rule that answer, if one does.
    #[inline]
    pub fn find(&self, request: &RequestView<'_>) -> Option<(usize, usize)> {
        self.sets
            .iter()
            .enumerate()
            .find_map(|(number, set)| Some((number, set.find(request)?)))
    }

    /// Every file and folder that it reads or writes.
    pub(crate) fn named_paths(&self) -> Vec<NamedPath> {
        let named = |usage| move |path: PathBuf| NamedPath { path, usage };
        let origins = self.sets.iter().filter_map(|set| set.origin().root.clone());
        let read = self.files.iter().chain(&self.others).cloned();
        let read = read.chain(origins).chain(self.roots());
        let kept = self.collections.iter().filter_map(|it| it.kept_file());
        // The folder of contents beside the mappings may not exist yet.
        let mappings = self.mappings.iter().map(|it| it.folder());
        read.map(named(PathUse::Read))
            .chain(kept.map(named(PathUse::WriteFile)))
            .chain(mappings.map(named(PathUse::WriteFolder)))
            .collect()
    }

    /// Paths of the files that it answers with, each once.
    pub fn roots(&self) -> Vec<PathBuf> {
        let rules = self.sets.iter().flat_map(|set| set.rules());
        let replies = rules.flat_map(|rule| &rule.replies);
        let of_rules = replies.filter_map(|reply| reply.root().map(Path::to_owned));
        let of_folder = self.folder.iter().map(|folder| folder.root().to_owned());
        let middlewares = self.middlewares.iter();
        let of_middlewares = middlewares.map(|it| it.folder().root().to_owned());
        let all = of_rules.chain(of_folder).chain(of_middlewares);
        let mut roots: Vec<PathBuf> = all.collect();
        roots.sort();
        roots.dedup();
        // A root within another one is watched with it.
        let all = roots.clone();
        roots.retain(|root| {
            !all.iter()
                .any(|other| root != other && root.starts_with(other))
        });
        roots
    }
}
